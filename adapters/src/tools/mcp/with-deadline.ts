import type { ports } from "@portico/core";

/**
 * Run work under a signal that aborts after `ms`, or with the first of `signals`. Rejects as soon as it aborts, with its reason, whether
 * or not the work listens.
 */
export async function withDeadline<T>(
  clock: ports.Clock,
  ms: number,
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = clock.after(ms, () => late.abort(new DOMException("The server did not answer in time", "TimeoutError")));
  try {
    const signal = AbortSignal.any([late.signal, ...signals]);
    return await untilAborted(work(signal), signal);
  } finally {
    timer.cancel();
  }
}

/** Stop waiting when the signal aborts; the work goes on for others who wait for it. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
