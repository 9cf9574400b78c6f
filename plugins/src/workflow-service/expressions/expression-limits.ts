/** Most characters of an expression. */
export const EXPRESSION_LENGTH = 10_000;

/**
 * Maximum steps of one evaluation of an expression. One step is about one iteration of a comprehension, 8 to 32 elements of a list, or 64
 * characters of a text. All steps take about a second.
 */
export const EXPRESSION_STEPS = 1_000_000;

/** An evaluation that takes more steps, about 10 ms, is begun again in a thread, because it blocks the event loop. */
export const EXPRESSION_STEPS_HERE = 10_000;

/** Milliseconds that the evaluations of a process take in one turn of the event loop. The last evaluation of a turn can exceed it. */
export const EXPRESSION_TURN_MS = 5;

/** Maximum processor time of one evaluation in the thread, in milliseconds. The limit allows slow machines. */
export const EXPRESSION_MS = 30_000;

/** Maximum characters of a regular expression, and of a text that it is matched with. */
export const PATTERN_LENGTH = 1000;
export const MATCHED_LENGTH = 100_000;

/** Maximum characters of a text, and maximum elements of a list, that a function of an expression makes. */
export const FUNCTION_RESULT_CHARACTERS = 4 * 1024 * 1024;
export const FUNCTION_RESULT_ELEMENTS = 100_000;
