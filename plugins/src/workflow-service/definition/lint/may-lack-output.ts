import type { Graph, GraphNode, Need } from "../definition.ts";
import { ancestorsOf } from "../order-nodes.ts";

/** The end of a node; undefined if it was skipped. */
type Outcome = { readonly case?: string | undefined; readonly isFailed?: boolean } | undefined;

/** Maximum steps of the search. If it would need more, nothing is reported. */
const MOST_STEPS = 20_000;

/** Whether there is a path through the graph on which a node has no output: the node is skipped, or its failure is ignored. */
export function mayLackOutput(graph: Graph, id: string): boolean {
  const needs = new Map([...graph.nodes.values()].map((node) => [node.id, node.needs.map(({ node: needed }) => needed)]));
  const before = ancestorsOf(id, needs);
  const nodes = [...graph.nodes.values()].filter((node) => node.id === id || before.has(node.id));
  const neededCases = new Set([...graph.nodes.values()].flatMap((node) => node.needs.map((need) => `${need.node}.${need.case}`)));
  const outcomes = new Map<string, Outcome>();
  let steps = 0;

  /** Each node comes after its needs. */
  const goOn = (index: number): boolean => {
    if (++steps > MOST_STEPS) return false;
    const node = nodes[index];
    if (!node) {
      const outcome = outcomes.get(id);
      return outcome === undefined || outcome.isFailed === true;
    }
    return outcomesOf(node).some((outcome) => {
      outcomes.set(node.id, outcome);
      return goOn(index + 1);
    });
  };
  const outcomesOf = (node: GraphNode): readonly Outcome[] => {
    const isStarted =
      node.isAlways || node.needs.length === 0 || node.needs.some((need) => isMet(need, graph.nodes.get(need.node)!, outcomes));
    if (!isStarted) return [undefined];
    const ends: Outcome[] = node.cases ? [...node.cases].map((each) => ({ case: each })) : [{}];
    const stop = node.rules.gate?.stop;
    // A rejection that no node needs fails the run.
    const failsRun = stop !== undefined && !neededCases.has(`${node.id}.${stop}`);
    const possible = failsRun ? ends.filter((end) => end?.case !== stop) : ends;
    return [...possible, ...(node.onError === "continue" ? [{ isFailed: true }] : []), ...(node.condition ? [undefined] : [])];
  };
  return goOn(0);
}

function isMet({ case: wanted }: Need, needed: GraphNode, outcomes: ReadonlyMap<string, Outcome>): boolean {
  const outcome = outcomes.get(needed.id);
  if (outcome === undefined) return false;
  if (outcome.isFailed) return wanted === undefined;
  const meant = wanted ?? needed.rules.gate?.pass;
  return meant === undefined || meant === outcome.case;
}
