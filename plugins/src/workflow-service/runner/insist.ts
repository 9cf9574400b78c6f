import { isStoreAway, ports } from "@portico/core";
import type { Running } from "./running.ts";

const PAUSES_MS = [100, 1000];
const LONGEST_PAUSE_MS = 5000;
/** Of a run that is cancelled: its signal tells no more when the process stops. What is not written then, the next start settles. */
const CANCELLED_ATTEMPTS = 10;

/**
 * Again and again while a store is away: a run is not to fail because of that. Throws what is no store's fault, and what the store says when the
 * work's own signal has aborted: whoever resumes it comes to the same place again.
 */
export async function insist<T>({ context, world }: Pick<Running, "context" | "world">, write: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      const { signal } = context;
      const isCancelled = signal.reason instanceof ports.WorkCancelled;
      if (!isStoreAway(error) || (signal.aborted && !(isCancelled && attempt < CANCELLED_ATTEMPTS))) throw error;
      const pause = PAUSES_MS[attempt] ?? LONGEST_PAUSE_MS;
      if (isCancelled) await world.clock.sleep(pause);
      else await world.clock.sleep(pause, signal).catch(() => {});
    }
  }
}
