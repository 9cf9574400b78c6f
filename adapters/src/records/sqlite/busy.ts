import { isBusy } from "./unavailable.ts";

/**
 * How long one call waits for another process's lock. SQLite blocks this thread while it waits, so the wait is short, and a
 * writer yields to the event loop between its attempts: 5 s in all.
 */
export const BUSY_WAIT_MS = 100;
export const BUSY_ATTEMPTS = 50;

/** Run `work`, and retry while another process holds a lock. Throws the error of `work`, finally also the error of the lock. */
export function patiently<T>(work: () => T, attempts = BUSY_ATTEMPTS): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return work();
    } catch (error) {
      if (attempt >= attempts || !isBusy(error)) throw error;
    }
  }
}
