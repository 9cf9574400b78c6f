/** Most bytes of a definition's text in UTF-8. */
export const DEFINITION_BYTES = 1024 * 1024;

/** Most values in a document when its aliases are followed: a few lines of aliases can stand for billions. */
export const DOCUMENT_VALUES = 200_000;

/** Most characters of a document's texts and keys when its aliases are followed. */
export const DOCUMENT_CHARACTERS = 4 * 1024 * 1024;

/** Texts up to this number of characters are parsed on the event loop. Larger texts would block it, and are parsed in a thread. */
export const READ_HERE_CHARACTERS = 8 * 1024;

/**
 * Processor time in which the thread reads one document, in milliseconds. The worst 1 MiB that are known take 4 s, so that a machine may be
 * slow, but a start does not wait much longer.
 */
export const READING_MS = 10_000;

/** The log names a document that is read for this long. */
export const SLOW_READING_MS = 2_000;

/** How deep lists and objects of a document can lie in each other. */
export const DOCUMENT_DEPTH = 100;

/** Most nodes of a definition, those inside `map` and `loop` counted. */
export const DEFINITION_NODES = 2000;

/** How deep `map` and `loop` nodes can lie in each other. */
export const GRAPH_DEPTH = 8;

/** Most problems that are told of one document. */
export const PROBLEMS_TOLD = 200;

/** Compiling a document stops after this number of problems. The reported problems are the first ones in the text. */
export const PROBLEMS_FOUND = 1000;

/** Most expressions of a definition, counted wherever they are written, and most characters of them together: compiling holds up the event loop. */
export const DEFINITION_EXPRESSIONS = 5000;
export const EXPRESSIONS_CHARACTERS = 150_000;

/** Most characters of an expression. */
export const EXPRESSION_LENGTH = 10_000;

/**
 * What one evaluation of an expression can cost: about a turn of a comprehension, 8 to 32 elements of a list or 64 characters of a text each.
 * Used up within a second or so, which the process spends on nothing else.
 */
export const EXPRESSION_STEPS = 1_000_000;

/** Most characters of a regular expression, and of a text that one is held against. */
export const PATTERN_LENGTH = 1000;
export const MATCHED_LENGTH = 100_000;

/** Most values that the JSON Schemas of a definition hold together, their own keywords counted: compiling them holds up the event loop. */
export const SCHEMA_VALUES = 3000;
/** Most characters of all their patterns, repetitions counted as often as they repeat. */
export const SCHEMA_PATTERNS = 20_000;
/** Most schemas that one is with its references followed: a few references to references can stand for billions. */
export const SCHEMA_EVALUATIONS = 10_000;

/** Processor time for checking one value against a schema with references, in milliseconds: the process does nothing else meanwhile. */
export const SCHEMA_CHECK_MS = 1000;

/** Any duration of a definition. */
export const LONGEST_DURATION_MS = 366 * 24 * 60 * 60 * 1000;

/** Of a run whose definition does not say. */
export const DEFAULT_RUN_TIMEOUT_MS = 24 * 60 * 60 * 1000;

export const RETRY_ATTEMPTS = 100;
export const DEFAULT_RETRY_DELAY_MS = 1000;
export const DEFAULT_RETRY_FACTOR = 2;
export const DEFAULT_RETRY_MAX_DELAY_MS = 60 * 60 * 1000;
