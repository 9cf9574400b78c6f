import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";

/** Specification 2.11. What else a service records is there, too, and not named here. */
export type Run = CallResult<typeof conversationsRunsContract.run>;

/** What a run is called: the title, or its ID. */
export function nameOf({ title, run_id }: Run): string {
  return title || run_id;
}

/** Where it came from, in words. */
export function sourceOf({ inbound, delegation, background }: Run): string {
  if (delegation) return `Delegated by ${delegation.fromAgentId}`;
  if (inbound) return `${inbound.origin === "webhook" ? "Webhook" : inbound.origin}: ${inbound.displayName}`;
  return background ? "Background" : "Conversation";
}

const REASONS: Readonly<Record<string, string>> = {
  process_restart: "the process restarted while it ran",
  timeout: "it took too long",
  stale: "nothing was heard of it any more",
  error: "an error",
  user_stop: "stopped by its user",
  system_suspension: "the service was stopped",
  background_timeout: "not done in the time that background turns have",
  conversation_cleared: "its conversation was cleared",
};

/** A reason for a person; one that is not known here is shown as it is. */
export function describeReason(reason: string): string {
  return REASONS[reason] ?? reason.replaceAll("_", " ");
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
