/** Begin something and wait for it, unless the signal aborts first: then it goes on by itself, and this rejects with the reason. */
export function orAbort<T>(begin: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    // For each wait: a promise that all of them race against would hold what they gave until it settles.
    const stop = (): void => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    void begin()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", stop));
  });
}
