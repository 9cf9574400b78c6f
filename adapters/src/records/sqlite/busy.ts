import { isBusy } from "./unavailable.ts";

/**
 * How long one call waits for another process's lock. SQLite waits by holding this thread, so the wait is short and a writer
 * lets the event loop breathe between its attempts: 5 s in all.
 */
export const BUSY_WAIT_MS = 100;
export const BUSY_ATTEMPTS = 50;

/** Run `work`, again while another process holds a lock. Throws what `work` throws, in the end also that it was locked. */
export function patiently<T>(work: () => T, attempts = BUSY_ATTEMPTS): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work();
    } catch (error) {
      if (attempt >= attempts || !isBusy(error)) throw error;
    }
  }
}
