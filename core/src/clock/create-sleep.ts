import type { Clock } from "../ports/clock.ts";

/** The clock port's `sleep`, made of its `after`. */
export function createSleep(after: Clock["after"]): Clock["sleep"] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = after(ms, () => {
        // A signal may live as long as the app: its listener must be removed.
        signal?.removeEventListener("abort", abort);
        resolve();
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
}
