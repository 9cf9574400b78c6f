import type { InferOutput } from "valibot";
import type { runMetadata } from "../contract.ts";
import type { OUTCOMES } from "../run-counts-contract.ts";

type Run = InferOutput<typeof runMetadata>;
type Outcome = (typeof OUTCOMES)[number];

/** Reasons of turns that a user stopped, or whose caller left. */
export const CANCELLED: readonly (string | undefined)[] = ["user_stop", "conversation_cleared", "caller_left"];

/** The outcome of a run. It follows from the record, so that no write can forget it. */
export function outcomeOf({ status, approvals = [], retry_at, interruption_reason, turn_started_at }: Run): Outcome {
  if (status === "failed") return "failed";
  if (approvals.length > 0 || retry_at !== undefined) return "waiting";
  if (status === "running") return "running";
  if (interruption_reason !== undefined) return CANCELLED.includes(interruption_reason) ? "cancelled" : "interrupted";
  return turn_started_at === undefined && status === "idle" ? "waiting" : "completed";
}

/**
 * Why the last turn of a run ended as it did: the code of its error, the reason of its interruption, or why it completed other than by its
 * agent's decision.
 */
export function reasonOf({ failure, failure_reason, interruption_reason, completion_reason }: Run): string | undefined {
  return failure?.code ?? failure_reason ?? interruption_reason ?? completion_reason;
}

/** A run as it is shown. */
export function shownRun(run: Run): Run & { readonly outcome: Outcome } {
  return { ...run, outcome: outcomeOf(run) };
}
