import type { ports } from "@portico/core";
import { WRONG_CODES, WRONG_CODES_MS } from "./limits.ts";

/** Counts wrong codes, so that a process answers only a few guesses. */
export interface WrongCodes {
  /** Milliseconds until codes are looked at again. 0: they are looked at now. */
  waitMs(): number;
  note(): void;
}

/** One count for all callers: behind a reverse proxy, all of them have the same address. */
export function createWrongCodes(clock: ports.Clock): WrongCodes {
  let count = 0;
  let endsAt = 0;
  return {
    waitMs: () => (count >= WRONG_CODES ? Math.max(0, endsAt - clock.now()) : 0),
    note() {
      const now = clock.now();
      if (now >= endsAt) {
        count = 0;
        endsAt = now + WRONG_CODES_MS;
      }
      count++;
    },
  };
}
