import { orAborted, type ports } from "@portico/core";

/**
 * Run work under a signal that aborts after `ms`, or with the first of `signals`. Rejects with its reason as soon as it aborts,
 * even if the work ignores it.
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
    return await orAborted(work(signal), signal);
  } finally {
    timer.cancel();
  }
}
