import type { Definition, Graph, GraphNode, Need } from "./definition.ts";

/** The graph of a definition as a Mermaid flowchart. Ids of the flowchart are numbers, so that no name can be a keyword of Mermaid. */
export function mermaidGraph({ name, graph, onFailure }: Definition): string {
  const ids = new Map<GraphNode, string>();
  const lines = linesOf(graph, ids, "  ");
  if (onFailure) lines.push(...linesOf({ nodes: new Map([[onFailure.id, onFailure]]) }, ids, "  "));
  // The title is YAML, in which a JSON text is a valid text.
  return ["---", `title: ${JSON.stringify(name)}`, "---", "flowchart TD", ...lines].join("\n");
}

function linesOf({ nodes }: Graph, ids: Map<GraphNode, string>, indent: string): string[] {
  const lines: string[] = [];
  for (const node of nodes.values()) {
    ids.set(node, `n${ids.size}`);
    const inner = innerGraph(node);
    if (inner) {
      const below = linesOf(inner, ids, `${indent}  `);
      lines.push(`${indent}subgraph ${ids.get(node)}["${labelOf(node)}"]`, ...below, `${indent}end`);
    } else {
      const [open, close] = SHAPES[node.rules.type] ?? ["[", "]"];
      lines.push(`${indent}${ids.get(node)}${open}"${labelOf(node)}"${close}`);
    }
  }
  for (const node of nodes.values()) {
    for (const need of node.needs) {
      lines.push(`${indent}${ids.get(nodes.get(need.node)!)} ${arrow(need, node)} ${ids.get(node)}`);
    }
  }
  return lines;
}

/** Diamonds decide by expressions. Hexagons wait for an answer from outside. */
const SHAPES: Readonly<Record<string, readonly [string, string]>> = {
  branch: ["{", "}"],
  human_gate: ["{{", "}}"],
  callback: ["{{", "}}"],
};

function innerGraph({ with: values }: GraphNode): Graph | undefined {
  return Object.values(values).find((value) => value.kind === "graph")?.graph;
}

/** A dotted arrow leads to a node with a condition, or with `if: always`. */
function arrow({ case: taken }: Need, { condition, isAlways }: GraphNode): string {
  const line = condition || isAlways ? "-.->" : "-->";
  return taken === undefined ? line : `${line}|"${escaped(taken)}"|`;
}

function labelOf({ id, name, rules }: GraphNode): string {
  const title = name === undefined ? escaped(id) : escaped(`${name} (${id})`);
  return `${title}<br/>${escaped(rules.type)}`;
}

/** Characters with a meaning in Mermaid, in Markdown or in HTML become entities of Mermaid. */
function escaped(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[^\p{L}\p{N}\p{M} .,_-]/gu, (character) => `#${character.codePointAt(0)};`);
}
