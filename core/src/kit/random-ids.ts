import { randomFillSync, randomUUID } from "node:crypto";
import type { Ids } from "../ports/ids.ts";

/** Unpredictable IDs, by the rules of the port `ids`. */
export function createRandomIds(): Ids {
  return { uuid: () => randomUUID(), id: (prefix) => prefix + randomLetters() };
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** 17 of 62 characters are 101 bits; 16 would be 95. */
const LENGTH = 17;
/** The largest multiple of 62 below 256. Larger bytes are skipped; otherwise the first letters would be more frequent. */
const FAIR = 248;

// Random bytes are fetched for many IDs at a time: one call to the system costs more than many IDs.
const pool = Buffer.allocUnsafe(8192);
let next = pool.length;

function randomLetters(): string {
  let letters = "";
  for (let count = 0; count < LENGTH;) {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    const byte = pool[next++] ?? FAIR;
    if (byte >= FAIR) continue;
    letters += ALPHABET[byte % ALPHABET.length];
    count++;
  }
  return letters;
}
