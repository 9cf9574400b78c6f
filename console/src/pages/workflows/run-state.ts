import type { GraphState, NodeState } from "./graph/graph-state.ts";
import { definitionId } from "./node-path.ts";
import { isOver } from "./status-words.ts";
import type { NodeResult, NodeStatus } from "./workflow-calls.ts";

/** The combined status of several elements is the most urgent one. */
const WEIGHT: readonly NodeStatus[] = ["waiting", "running", "failed", "cancelled", "completed", "skipped"];

/** The state of a run, by the nodes of its definition, for the graph. */
export function runState(results: Readonly<Record<string, Pick<NodeResult, "status" | "outputs">>>): GraphState {
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

/** The case that a branch took, or the decision of a gate. */
function caseOf(outputs: unknown): string | undefined {
  const { case: way, decision } = (outputs ?? {}) as { readonly case?: unknown; readonly decision?: unknown };
  if (typeof way === "string") return way;
  return typeof decision === "string" ? decision : undefined;
}
