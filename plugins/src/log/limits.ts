/** Readers of one process at a time. Each of them parses every line. */
export const MOST_READERS = 8;

/** Earlier lines that a new reader gets, unless it asks for another number. */
export const EARLIER_LINES = 200;
export const MOST_EARLIER_LINES = 2_000;

/** A reader that looks for rare lines lets other work go on after this number of lines. */
export const LINES_AT_ONCE = 100;

/** A reader whose connection breaks connects again after this time. */
export const RECONNECT_MS = 3_000;
