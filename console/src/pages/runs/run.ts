import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { Receipt } from "./receipts.svelte.ts";

/** Specification 2.11. Services may record more fields, which are not declared here. */
export type Run = CallResult<typeof conversationsRunsContract.run>;

/** The name of a run: the title, or its ID. */
export function nameOf({ title, run_id }: Run): string {
  return title || run_id;
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

/** `1.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function describeDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1_000);
  return seconds < 3_600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
