import { isStoreAway, type ports } from "@portico/core";

const PAUSES_MS = [100, 1000];
const LONGEST_PAUSE_MS = 5000;

/**
 * Write until the stores take it: what was accepted must not be lost to a store that is away. Throws what is no store's fault at once, and
 * what the store says when the work's signal has aborted: then the engine closes the work at the next start.
 */
export async function persistently<T>(clock: ports.Clock, signal: AbortSignal, write: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      if (!isStoreAway(error) || signal.aborted) throw error;
      await clock.sleep(PAUSES_MS[attempt] ?? LONGEST_PAUSE_MS, signal).catch(() => {});
    }
  }
}
