import type { FollowedRun } from "./apply-event.ts";

/** The node at which a run failed, as deep inside `map` and `loop` as the history tells. Undefined if no node failed. */
export function failingNode({ error, nodeResults }: FollowedRun): string | undefined {
  const failed = Object.keys(nodeResults).filter((key) => nodeResults[key]!.status === "failed");
  const told = error?.nodeId !== undefined && nodeResults[error.nodeId] ? error.nodeId : undefined;
  const first = told ?? failed[0];
  // Nodes inside of the failed node have longer paths.
  const inside = failed.filter((key) => first !== undefined && (key.startsWith(`${first}[`) || key.startsWith(`${first}.`)));
  return inside.toSorted((a, b) => b.length - a.length)[0] ?? first;
}
