import type { GraphState, NodeState } from "./graph/graph-state.ts";
import { definitionId } from "./node-path.ts";
import { isOver } from "./status-words.ts";
import type { NodeResult, NodeStatus } from "./workflow-calls.ts";

/** Of several elements, what has to be looked at first tells how they stand together. */
const WEIGHT: readonly NodeStatus[] = ["waiting", "running", "failed", "cancelled", "completed", "skipped"];

/** What a run has come to, by the nodes of its definition: what is lit up in the graph. */
export function runState(results: Readonly<Record<string, NodeResult>>): GraphState {
  const states = new Map<string, NodeState>();
  for (const [key, { status, outputs }] of Object.entries(results)) {
    const id = definitionId(key);
    const before = states.get(id);
    const way = caseOf(outputs);
    if (id === key) {
      states.set(id, { status, ...(way !== undefined && { case: way }) });
      continue;
    }
    const { over, all } = before?.elements ?? { over: 0, all: 0 };
    states.set(id, {
      status: before && WEIGHT.indexOf(before.status) < WEIGHT.indexOf(status) ? before.status : status,
      elements: { over: over + (isOver(status) ? 1 : 0), all: all + 1 },
    });
  }
  return { of: (id) => states.get(id), isRun: true };
}

/** A branch says which case it took, a gate which decision. */
function caseOf(outputs: unknown): string | undefined {
  const { case: way, decision } = (outputs ?? {}) as { readonly case?: unknown; readonly decision?: unknown };
  if (typeof way === "string") return way;
  return typeof decision === "string" ? decision : undefined;
}
