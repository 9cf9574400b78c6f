/**
 * What a promise answers; or rejects with the signal's reason as soon as that aborts, or has: the work then goes on by itself, and for others who
 * wait for it. Without a signal it is the promise.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  // For each wait: a promise that all of them race against would hold what they gave until it settles.
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
