import { CallFailed } from "@portico/core/client";

/** What a submission's answer means for what comes next. */
export type AfterAnswer = "refused" | "busy" | "unsure";

/**
 * A submission that got no 202 (specification 7.6): a refusal is final; a busy conversation wants the same submission later; after
 * anything else nobody knows whether it arrived, and the lookup decides.
 */
export function afterFailure(error: unknown): AfterAnswer {
  if (!CallFailed.is(error) || error.status >= 500 || error.status === 408 || error.status === 429) return "unsure";
  return error.status === 409 && (error.body as { busy?: unknown } | null)?.busy === true ? "busy" : "refused";
}

/** What a lookup's status means (specification 3.4): `absent` allows the same submission again, within its window alone. */
export function afterLookup(
  status: "committed" | "reserved" | "absent" | "unknown",
  { ageMs, autoReplayRetentionMs }: { readonly ageMs: number; readonly autoReplayRetentionMs: number },
): "accepted" | "replay" | "unknown" {
  if (status === "committed" || status === "reserved") return "accepted";
  return status === "absent" && ageMs < autoReplayRetentionMs ? "replay" : "unknown";
}

/** Milliseconds before the next attempt, growing, with some chance in it: a service that comes back is not met by everybody at once. */
export function pauseMs(attempt: number): number {
  return Math.min(200 * 2 ** Math.min(attempt, 6), 10_000) * (0.5 + Math.random() / 2);
}
