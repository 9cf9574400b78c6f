import type { Clock } from "./ports/clock.ts";
import { WorkCancelled } from "./ports/engine.ts";
import { isStoreAway } from "./store-away.ts";

/** How durable work retries a call to an unavailable store. */
export interface StoreRetry {
  readonly clock: Clock;
  /** The work's signal. Once it has aborted, the call is not repeated: the engine takes the work up again at the next start. */
  readonly signal: AbortSignal;
  /**
   * Total attempts for cancelled work; default 0. Cancelled work is not taken up again, and its signal does not tell when the
   * process stops. If these attempts fail, the area completes the write at its next start.
   */
  readonly cancelledAttempts?: number | undefined;
}

const PAUSES_MS = [100, 1000];
const LONGEST_PAUSE_MS = 5000;

/**
 * Calls a store until it answers, because an unavailable store must not cause the loss of accepted work. Errors that the store's
 * availability did not cause (`isStoreAway`) are thrown at once. After the signal has aborted, all errors of the store are
 * thrown.
 */
export async function retryWhileStoreAway<T>(
  { clock, signal, cancelledAttempts = 0 }: StoreRetry,
  call: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isCancelled = cancelledAttempts > 0 && signal.reason instanceof WorkCancelled;
      if (!isStoreAway(error) || (signal.aborted && !(isCancelled && attempt < cancelledAttempts))) throw error;
      const pause = PAUSES_MS[attempt] ?? LONGEST_PAUSE_MS;
      if (isCancelled) await clock.sleep(pause);
      else await clock.sleep(pause, signal).catch(() => {});
    }
  }
}
