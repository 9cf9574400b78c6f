/** How long a link can be used: long enough to copy it to another device. */
export const LINK_MS = 10 * 60 * 1000;

/** Characters of a presented code that are looked at. A code has 43. */
export const CODE_LENGTH = 200;

/** Bytes of the body with the code. */
export const EXCHANGE_BYTES = 4 * 1024;

/**
 * Wrong codes that one process answers with 401 within `WRONG_CODES_MS`. Further wrong ones get 429, so that programs that repeat a code slow
 * down, and alerts see guesses. A right code is never refused: otherwise any caller could keep the owner out. 256 random bits protect a
 * code against guesses.
 */
export const WRONG_CODES = 20;
export const WRONG_CODES_MS = 60_000;
