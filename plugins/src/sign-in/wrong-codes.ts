import type { ports } from "@portico/core";
import { WRONG_CODES, WRONG_CODES_MS } from "./limits.ts";

/** Counts the wrong codes of all callers. Behind a reverse proxy, callers may have the same address. */
export interface WrongCodes {
  /** Notes a wrong code. Returns the milliseconds until its caller should try again, or 0 if there were only a few. */
  note(): number;
}

/** The count of one process. */
export function createWrongCodes(clock: ports.Clock): WrongCodes {
  let count = 0;
  let endsAt = 0;
  return {
    note() {
      const now = clock.now();
      if (now >= endsAt) {
        count = 0;
        endsAt = now + WRONG_CODES_MS;
      }
      count++;
      return count > WRONG_CODES ? endsAt - now : 0;
    },
  };
}
