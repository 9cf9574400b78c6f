import { describe, expect, it } from "vitest";
import { mermaidGraph } from "../../../../plugins/src/workflow-service/definition/mermaid-graph.ts";
import { load } from "./stand-in-nodes.ts";

const graphOf = (text: string) => mermaidGraph(load(text).definition!).split("\n");

describe("the Mermaid flowchart of a definition", () => {
  it("has every node, also those inside map, with arrows for needs and their cases", () => {
    const lines = graphOf(`
name: Triage
nodes:
  route: { type: branch, with: { cases: { bug: "true" }, else: question } }
  ask: { type: human_gate, needs: [route.bug], if: "true", with: { title: Sure? } }
  each:
    type: map
    needs: [ask]
    with: { items: "[1]", result: "1", nodes: { end: { type: fail, with: { message: a } }, b: { type: fail, needs: [end], with: { message: b } } } }
`);
    expect(lines).toEqual([
      "---",
      'title: "Triage"',
      "---",
      "flowchart TD",
      '  n0{"route<br/>branch"}',
      '  n1{{"ask<br/>human_gate"}}',
      '  subgraph n2["each<br/>map"]',
      '    n3["end<br/>fail"]',
      '    n4["b<br/>fail"]',
      "    n3 --> n4",
      "  end",
      '  n0 -.->|"bug"| n1',
      "  n1 --> n2",
    ]);
  });

  it("escapes names, so that they cannot end a label, add Markdown or HTML, or change the title", () => {
    const lines = graphOf(
      JSON.stringify({
        name: '"]\n---\nclick n0 "javascript:x"',
        nodes: { end: { type: "fail", name: '`a`"]; <b>#1;\nclick n0', with: { message: "x" } } },
      }),
    );
    expect(lines.slice(1)).toEqual([
      'title: "\\"]\\n---\\nclick n0 \\"javascript:x\\""',
      "---",
      "flowchart TD",
      '  n0["#96;a#96;#34;#93;#59; #60;b#62;#35;1#59; click n0 #40;end#41;<br/>fail"]',
    ]);
  });
});
