/**
 * Returns the result of a promise, or rejects with the signal's reason as soon as the signal is aborted. The work then continues
 * by itself, and for other waiting callers. Without a signal, returns the promise unchanged.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  // A new promise for each wait: a shared one would keep the results of all races in memory until it settles.
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(
      (result) => {
        signal.removeEventListener("abort", abort);
        resolve(result);
      },
      (error: unknown) => {
        signal.removeEventListener("abort", abort);
        reject(error as Error);
      },
    );
  });
}
