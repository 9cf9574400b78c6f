import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { RunStatusWords } from "../../blocks/runs/run-list.ts";
import type { Tone } from "../../blocks/StatusBadge.svelte";
import type { Receipt } from "./receipts.svelte.ts";

/** Specification 2.11. Services may record more fields, which are not declared here. */
export type Run = CallResult<typeof conversationsRunsContract.run>;

/** The name of a run: the title, or its ID. */
export function nameOf({ title, run_id }: Run): string {
  return title || run_id;
}

/** Whether the owner can run it again, in a new run. */
export function isRepeatable({ status, background = false }: Run): boolean {
  return status === "failed" && background;
}

/** The origin of the run, as text. */
export function sourceOf({ inbound, delegation, background }: Run): string {
  if (delegation) return `Delegated by ${delegation.fromAgentId}`;
  if (inbound) return `${inbound.origin === "webhook" ? "Webhook" : inbound.origin}: ${inbound.displayName}`;
  return background ? "Background" : "Conversation";
}

const REASONS: Readonly<Record<string, string>> = {
  process_restart: "the process restarted while it ran",
  timeout: "it took too long",
  stale: "it sent no sign of life",
  error: "an error",
  user_stop: "stopped by its user",
  caller_left: "its caller left",
  system_suspension: "the service was stopped",
  background_timeout: "it exceeded the time limit of background turns",
  conversation_cleared: "its conversation was cleared",
};

/** A reason, as text for a person. Unknown reasons are shown unchanged. */
export function describeReason(reason: string): string {
  return REASONS[reason] ?? reason.replaceAll("_", " ");
}

/** Why the last turn of a run failed, as text for a person: in the words of its error, which the run keeps until its next turn. */
export function describeRunFailure({ failure, failure_reason = "unknown" }: Run): string {
  return failure?.message ?? describeReason(failure_reason);
}

/** Why a completed turn ended, if not by the agent's decision (open points 13). */
const ENDINGS: Readonly<Record<string, string>> = {
  max_turns: "It reached its limit of model calls.",
  max_tokens: "Its last answer was truncated at a token limit.",
  refusal: "The model refused to answer.",
  content_filter: "The model's provider blocked the answer.",
  empty_answer: "Its last answer was empty.",
};

/** Why a turn ended, as text for a person. Undefined for mere interruptions. */
export function describeEnding(reason: string | undefined): string | undefined {
  return reason === undefined ? undefined : ENDINGS[reason];
}

/** Whether the turn of a receipt failed, or was interrupted. */
export function hasFailed({ outcome, interruption_reason: reason }: Receipt): boolean {
  return outcome.status === "failed" || (reason !== undefined && describeEnding(reason) === undefined);
}

/** How the turn of a receipt ended, as text for a person. Undefined if it completed by its agent's decision. */
export function describeEnd({ outcome, failure, interruption_reason: reason }: Receipt): string | undefined {
  if (outcome.status === "failed" && reason === undefined)
    return `The turn failed: ${failure?.message ?? describeReason("process_restart")}`;
  return reason === undefined ? undefined : (describeEnding(reason) ?? `The turn was interrupted: ${describeReason(reason)}`);
}

/** The words for outcomes: of the last turn, or what the run does now. */
export const OUTCOME_WORDS: Readonly<Record<Run["outcome"], { readonly text: string; readonly tone: Tone }>> = {
  running: { text: "Running", tone: "active" },
  waiting: { text: "Waiting", tone: "warn" },
  completed: { text: "Completed", tone: "good" },
  failed: { text: "Failed", tone: "bad" },
  interrupted: { text: "Interrupted", tone: "warn" },
  cancelled: { text: "Stopped", tone: "neutral" },
};

/** Reasons why a turn completed, if not by its agent's decision, in few words. */
const SHORT_ENDINGS: Readonly<Record<string, string>> = {
  max_turns: "limit of model calls",
  max_tokens: "truncated at a token limit",
  refusal: "refused by the model",
  content_filter: "blocked by the provider",
  empty_answer: "empty answer",
};

/** The outcome of a run, and why it has it. */
export function outcomeOf(run: Run): RunStatusWords {
  const { outcome, approvals = [], retry_at, failure, failure_reason, interruption_reason, completion_reason } = run;
  const { text, tone } = OUTCOME_WORDS[outcome];
  const isEarly = outcome === "completed" && completion_reason !== undefined;
  return {
    text,
    tone: isEarly ? "warn" : tone,
    why: isEarly ? (SHORT_ENDINGS[completion_reason] ?? describeReason(completion_reason)) : reason(),
    message: failure?.message,
  };

  function reason(): string | undefined {
    if (approvals.length > 0) return "for approval";
    // A code says more than that it was an error. The column of errors has the message.
    if (failure && outcome === "failed") return [failure.code.replaceAll("_", " "), failure.provider].filter(Boolean).join(", ");
    if (retry_at !== undefined) return "for another attempt";
    const known = failure_reason ?? interruption_reason;
    return known === undefined ? undefined : describeReason(known);
  }
}
