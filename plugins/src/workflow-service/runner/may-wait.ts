import type { Definition, GraphNode } from "../definition/definition.ts";
import type { World } from "./running.ts";

const known = new WeakMap<Definition, boolean>();

/**
 * Whether runs of a definition can wait so long that the engine parks them. A parked run is executed again from the beginning. Finished steps
 * return their stored results, and its attempt is still the first.
 */
export function mayWait(definition: Definition, kinds: World["kinds"]): boolean {
  const answer =
    known.get(definition) ??
    hasWaits([...definition.graph.nodes.values(), ...(definition.onFailure ? [definition.onFailure] : [])], kinds);
  known.set(definition, answer);
  return answer;
}

function hasWaits(nodes: readonly GraphNode[], kinds: World["kinds"]): boolean {
  return nodes.some(
    ({ rules, retry, with: values }) =>
      kinds.get(rules.type)?.waits ||
      retry.attempts > 1 ||
      Object.values(values).some((value) => value.kind === "graph" && hasWaits([...value.graph.nodes.values()], kinds)),
  );
}
