import type { Graph, GraphNode, Need } from "../../../plugins/src/workflow-service/definition/definition.ts";
import { type NodeEvent, schedule } from "../../../plugins/src/workflow-service/runner/schedule.ts";
import { humanGateKind } from "../../../plugins/src/workflow-service/kinds/human-gate.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

interface Written {
  readonly needs?: readonly string[];
  readonly type?: string;
  readonly onError?: "fail" | "continue";
}

function graphOf(nodes: Readonly<Record<string, Written>>): Graph {
  const all = Object.entries(nodes).map(([id, { needs = [], type = "transform", onError = "fail" }]): [string, GraphNode] => [
    id,
    {
      id,
      rules: {
        type,
        input: undefined as never,
        repeatable: true,
        ...(type === humanGateKind.type && { gate: humanGateKind.gate }),
      },
      needs: needs.map((need): Need => {
        const [node = "", name] = need.split(".");
        return { node, ...(name !== undefined && { case: name }) };
      }),
      with: {},
      retry: { attempts: 1, delayMs: 0, factor: 1, maxDelayMs: 0 },
      onError,
    },
  ]);
  return { nodes: new Map(all) };
}

/** `+a` started, `a` completed, `a.case` completed in a case, `!a` failed, `-a` skipped. */
function eventsOf(text: string): readonly NodeEvent[] {
  return text
    .split(" ")
    .filter(Boolean)
    .map((word): NodeEvent => {
      const [id = "", name] = word.replace(/^[+!-]/, "").split(".");
      if (word.startsWith("+")) return { type: "started", node: id };
      if (word.startsWith("-")) return { type: "skipped", node: id };
      if (word.startsWith("!")) return { type: "failed", node: id };
      return { type: "completed", node: id, case: name };
    });
}

const gate = { type: "human_gate" };
const branch = { type: "branch" };

describe("what is to be done after some events (workflow.md, rules)", () => {
  it.each<[string, Record<string, Written>, string, { start?: string[]; skip?: string[]; completed?: boolean; failed?: string }]>(
    [
      ["nodes without open needs start side by side", { a: {}, b: {}, c: { needs: ["a"] } }, "", { start: ["a", "b"] }],
      ["what was started is not started again", { a: {}, b: {} }, "+a", { start: ["b"] }],
      ["a node waits for all its needs", { a: {}, b: {}, c: { needs: ["a", "b"] } }, "+a +b a", {}],
      [
        "a node starts when all its needs have completed",
        { a: {}, b: {}, c: { needs: ["a", "b"] } },
        "+a +b a b",
        { start: ["c"] },
      ],
      [
        "a branch's case starts what needs it, and skips what needs another",
        { r: branch, x: { needs: ["r.x"] }, y: { needs: ["r.y"] } },
        "+r r.x",
        { start: ["x"], skip: ["y"] },
      ],
      ["a plain need of a branch means every case", { r: branch, a: { needs: ["r"] } }, "+r r.x", { start: ["a"] }],
      ["a branch that took no case skips what needs one", { r: branch, x: { needs: ["r.x"] } }, "+r r", { skip: ["x"] }],
      ["a node all of whose needs are skipped is skipped", { a: {}, b: { needs: ["a"] } }, "-a", { skip: ["b"] }],
      [
        "a node with some needs completed and the others skipped runs",
        { a: {}, b: {}, c: { needs: ["a", "b"] } },
        "+a a -b",
        { start: ["c"] },
      ],
      [
        "a need that is open is waited for, also where another was skipped",
        { a: {}, b: {}, c: { needs: ["a", "b"] } },
        "-a +b",
        {},
      ],
      ["a failure ends the graph", { a: {}, b: {} }, "+a +b !a", { failed: "a" }],
      [
        "a failure with onError: continue meets a plain need",
        { a: { onError: "continue" }, b: { needs: ["a"] } },
        "+a !a",
        { start: ["b"] },
      ],
      [
        "a failed branch has taken no case",
        { a: { ...branch, onError: "continue" }, b: { needs: ["a.x"] } },
        "+a !a",
        { skip: ["b"] },
      ],
      [
        "an approved gate meets a plain need",
        { g: gate, a: { needs: ["g"] }, n: { needs: ["g.reject"] } },
        "+g g.approve",
        { start: ["a"], skip: ["n"] },
      ],
      ["a rejected gate fails the graph", { g: gate, a: { needs: ["g"] } }, "+g g.reject", { failed: "g" }],
      [
        "a rejected gate does not, where a node needs the rejection",
        { g: gate, a: { needs: ["g"] }, n: { needs: ["g.reject"] } },
        "+g g.reject",
        { start: ["n"], skip: ["a"] },
      ],
      ["a branch may call a case reject", { r: branch, a: { needs: ["r.approve"] } }, "+r r.reject", { skip: ["a"] }],
      ["it is completed when every node has ended", { a: {}, b: { needs: ["a"] } }, "+a a +b b", { completed: true }],
      [
        "it is completed though nodes were skipped or failed with onError: continue",
        { a: { onError: "continue" }, b: {} },
        "+a !a -b",
        { completed: true },
      ],
      ["a graph without nodes is completed", {}, "", { completed: true }],
    ],
  )("%s", (_rule, nodes, events, { start = [], skip = [], completed = false, failed }) => {
    const decision = schedule(graphOf(nodes), eventsOf(events));
    expect({ ...decision, failed: decision.failed }).toEqual({ start, skip, completed, failed });
  });
});

/** Graphs of 1 to 12 nodes, needs only backwards; a third of the nodes are branches of two cases, of which needs name one or none. */
const graphs = fc
  .array(
    fc.record({
      isBranch: fc.boolean(),
      needs: fc.array(fc.tuple(fc.nat(11), fc.constantFrom("", ".x", ".y")), { maxLength: 3 }),
      fails: fc.integer({ min: 0, max: 9 }).map((at) => at === 0),
      continues: fc.boolean(),
      taken: fc.constantFrom("x", "y"),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((nodes) => {
    const written: Record<string, Written> = {};
    nodes.forEach(({ isBranch, needs, continues }, at) => {
      const earlier = needs.filter(([index]) => index < at);
      written[`n${at}`] = {
        type: isBranch ? "branch" : "transform",
        needs: [...new Map(earlier.map(([index, name]) => [index, `n${index}${nodes[index]!.isBranch ? name : ""}`])).values()],
        onError: continues ? "continue" : "fail",
      };
    });
    return { graph: graphOf(written), nodes };
  });

describe("in any order in which nodes end", () => {
  it("no node starts before its needs have ended, each starts or is skipped once, and the graph ends", () => {
    fc.assert(
      fc.property(graphs, fc.infiniteStream(fc.nat()), ({ graph, nodes }, choices) => {
        play({ graph, nodes }, choices);
      }),
    );
  });

  it("the same nodes run, are skipped and fail, unless a failure cut the graph short", () => {
    fc.assert(
      fc.property(graphs, fc.infiniteStream(fc.nat()), fc.infiniteStream(fc.nat()), (given, one, other) => {
        const [first, second] = [play(given, one), play(given, other)];
        expect(first.failed === undefined).toBe(second.failed === undefined);
        if (first.failed === undefined) expect(first.outcomes).toEqual(second.outcomes);
      }),
    );
  });
});

function play(
  { graph, nodes }: { graph: Graph; nodes: readonly { isBranch: boolean; fails: boolean; taken: string }[] },
  choices: Iterable<number>,
) {
  const events: NodeEvent[] = [];
  const working: string[] = [];
  const ended = new Set<string>();
  const outcomes: Record<string, string> = {};
  const chosen = choices[Symbol.iterator]();
  for (;;) {
    const { start, skip, completed, failed } = schedule(graph, events);
    if (failed !== undefined) return { failed, outcomes };
    if (completed) {
      expect(Object.keys(outcomes)).toHaveLength(graph.nodes.size);
      return { failed, outcomes };
    }
    for (const id of [...start, ...skip]) {
      expect(outcomes[id], `${id} is decided once`).toBeUndefined();
      expect(working).not.toContain(id);
      expect(graph.nodes.get(id)!.needs.filter(({ node }) => !ended.has(node))).toEqual([]);
    }
    for (const id of skip) {
      events.push({ type: "skipped", node: id });
      ended.add(id);
      outcomes[id] = "skipped";
    }
    for (const id of start) {
      events.push({ type: "started", node: id });
      working.push(id);
    }
    if (skip.length > 0) continue;
    expect(working.length, "something works while it is not at its end").toBeGreaterThan(0);
    const [id = ""] = working.splice((chosen.next().value as number) % working.length, 1);
    const { isBranch, fails, taken } = nodes[Number(id.slice(1))]!;
    events.push(fails ? { type: "failed", node: id } : { type: "completed", node: id, case: isBranch ? taken : undefined });
    ended.add(id);
    outcomes[id] = fails ? "failed" : "completed";
  }
}
