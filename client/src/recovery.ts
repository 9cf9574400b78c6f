import { CallFailed } from "@portico/core/client";

/** What the client does next, by the answer to a submission. */
export type AfterAnswer = "refused" | "busy" | "unsure";

/**
 * A submission without a 202 (specification 7.6). A refusal is final. If the conversation is busy, the same submission is sent
 * later. After any other answer it is unknown whether the submission arrived, and the lookup decides.
 */
export function afterFailure(error: unknown): AfterAnswer {
  if (!CallFailed.is(error) || error.status >= 500 || error.status === 408 || error.status === 429) return "unsure";
  return error.status === 409 && (error.body as { busy?: unknown } | null)?.busy === true ? "busy" : "refused";
}

/**
 * The meaning of a lookup's status (specification 3.4). `absent` allows the same submission again, but only within its time
 * window.
 */
export function afterLookup(
  status: "committed" | "reserved" | "absent" | "unknown",
  { ageMs, autoReplayRetentionMs }: { readonly ageMs: number; readonly autoReplayRetentionMs: number },
): "accepted" | "replay" | "unknown" {
  if (status === "committed" || status === "reserved") return "accepted";
  return status === "absent" && ageMs < autoReplayRetentionMs ? "replay" : "unknown";
}

/**
 * Milliseconds before the next attempt. The pause grows and is partly random, so that clients do not all return to a restarted
 * service at once.
 */
export function pauseMs(attempt: number): number {
  return Math.min(200 * 2 ** Math.min(attempt, 6), 10_000) * (0.5 + Math.random() / 2);
}
