/** Readers of one process at a time. Each of them parses every line. */
export const MOST_READERS = 8;

/** Earlier lines that a new reader gets, unless it asks for another number. */
export const EARLIER_LINES = 200;
export const MOST_EARLIER_LINES = 2_000;

/** A reader that looks for rare lines lets other work go on after this number of lines. */
export const LINES_AT_ONCE = 100;

/** A reader whose connection breaks connects again after this time. */
export const RECONNECT_MS = 3_000;

/** Bounds of the lines of other processes that wait for one reader. */
export const QUEUED_LINES = 1_000;
export const QUEUED_CHARACTERS = 512 * 1024;

/** A process sends its lines to others that follow at most this often, and at most this much at once: less than a message of the bus can hold. */
export const GATHER_MS = 200;
export const LINES_PER_MESSAGE = 500;
export const CHARACTERS_AT_ONCE = 128 * 1024;

/** A process that follows says so this often. Others forget it after the longer time. */
export const FOLLOW_AGAIN_MS = 5_000;
export const FOLLOWED_MS = 15_000;

/** Areas that a new reader is told of. */
export const MOST_AREAS = 100;

/** Processes whose lines are counted, to notice those that the bus lost. */
export const KNOWN_PROCESSES = 1_000;
