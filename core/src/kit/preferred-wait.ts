import type { RequestHead } from "../grammar/contract.ts";
import type { Clock } from "../ports/clock.ts";

/** Proxies and load balancers wait 60 seconds for an answer unless they are told otherwise. A caller that wants more asks again. */
const LONGEST_WAIT_S = 55;

/** What a call of a route knows of its caller and its server. */
export interface WaitingCall {
  readonly head: Pick<RequestHead, "header">;
  /** Aborts when the caller leaves. */
  readonly signal: AbortSignal;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
  /** Headers of its answer. */
  readonly answerHeaders: Record<string, string>;
}

/**
 * How long a caller wants to wait for a result: the preference `wait` of the header `Prefer`, in whole seconds (RFC 7240, sections 2 and 4.3).
 * Gives milliseconds, at most 55,000; 0 without the preference, and for a value that is not a whole number, which RFC 7240 lets a server
 * ignore.
 */
export function preferredWaitMs(head: WaitingCall["head"]): number {
  const preferences = head.header("prefer")?.split(",") ?? [];
  for (const preference of preferences) {
    const [name = "", value = ""] = preference.split(";", 1)[0]!.split("=", 2);
    // The first of several counts.
    if (name.trim().toLowerCase() === "wait") return waitMsOf(value.trim().replace(/^"(.*)"$/, "$1"));
  }
  return 0;
}

function waitMsOf(value: string): number {
  return /^\d{1,9}$/.test(value) ? Math.min(Number(value), LONGEST_WAIT_S) * 1000 : 0;
}

/** Says in the header `Preference-Applied` that the answer is the one for which the caller wanted to wait (RFC 7240, section 3). */
export function waitApplied({ head, answerHeaders }: Pick<WaitingCall, "head" | "answerHeaders">): void {
  const ms = preferredWaitMs(head);
  if (ms > 0) answerHeaders["preference-applied"] = `wait=${ms / 1000}`;
}

/**
 * Calls `wait` with a signal that aborts when the caller's preferred wait has passed, the caller leaves or the server stops, and gives its result.
 * Undefined without calling it if the caller does not want to wait.
 */
export async function preferredWait<T>(
  { head, signal, stopping }: Omit<WaitingCall, "answerHeaders">,
  clock: Clock,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const ms = preferredWaitMs(head);
  if (ms === 0) return undefined;
  const over = new AbortController();
  const timer = clock.after(ms, () => over.abort());
  try {
    return await wait(AbortSignal.any([over.signal, signal, stopping]));
  } finally {
    timer.cancel();
  }
}
