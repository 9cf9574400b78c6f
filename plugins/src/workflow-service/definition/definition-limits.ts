import { DURATION, parseDuration } from "@portico/core";
import * as v from "valibot";

/** Most bytes of a definition's text in UTF-8. */
export const DEFINITION_BYTES = 1024 * 1024;

/** Maximum values in a document with its aliases expanded. A few lines of aliases can expand to billions of values. */
export const DOCUMENT_VALUES = 200_000;

/** Maximum characters of a document's texts and keys with its aliases expanded. */
export const DOCUMENT_CHARACTERS = 4 * 1024 * 1024;

/** Texts up to this number of characters are parsed on the event loop. Larger texts would block it, and are parsed in a thread. */
export const READ_HERE_CHARACTERS = 8 * 1024;

/**
 * Maximum processor time for reading one document in the thread, in milliseconds. The slowest known document of 1 MiB takes 4 s. The limit
 * allows slow machines, but bounds the delay of a start.
 */
export const READING_MS = 10_000;

/** The log names a document if reading it takes this long. */
export const SLOW_READING_MS = 2_000;

/** Maximum nesting of lists and objects in a document. */
export const DOCUMENT_DEPTH = 100;

/** Maximum nodes of a definition, including those inside `map` and `loop`. */
export const DEFINITION_NODES = 2000;

/** Maximum nesting of `map` and `loop` nodes. */
export const GRAPH_DEPTH = 8;

/** Maximum searchable parameters of a definition, and maximum searchable outputs. */
export const SEARCH_FIELDS = 8;

/** Maximum problems that are reported for one document. */
export const PROBLEMS_TOLD = 200;

/** Compiling a document stops after this number of problems. The reported problems are the first ones in the text. */
export const PROBLEMS_FOUND = 1000;

/** Maximum expressions of a definition, and maximum total characters. Repeated expressions count each time. Compiling blocks the event loop. */
export const DEFINITION_EXPRESSIONS = 5000;
export const EXPRESSIONS_CHARACTERS = 150_000;

/** Maximum processor time for checking the parameters of a definition's schedules, in milliseconds. The checks block the event loop. */
export const SCHEDULES_CHECK_MS = 1000;

/** Maximum of any duration in a definition. */
const LONGEST_DURATION_MS = 366 * 24 * 60 * 60 * 1000;

/** Default timeout of a run. */
export const DEFAULT_RUN_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/** Maximum schedules of a definition, and of missed planned times that are started late. */
export const DEFINITION_SCHEDULES = 50;
export const MISSED_TIMES = 1000;
/** Maximum jitter of a schedule, and minimum interval between its planned times. */
export const LONGEST_JITTER_MS = 60 * 60 * 1000;
export const SHORTEST_INTERVAL_MS = 1000;

/** Maximum of `concurrency.limit`. One record lists the runs that go on. */
export const CONCURRENCY_LIMIT = 1000;

/** `debounce.maxWait` as multiples of `delay`: the default and the maximum. Each delay may take a step of the run. */
export const DEBOUNCE_DELAYS = { usual: 10, most: 1000 } as const;

/** Maximum of `retry.attempts`. */
export const RETRY_ATTEMPTS = 100;
/** Defaults of `retry`: `delay`, `factor` and `maxDelay`. */
export const DEFAULT_RETRY_DELAY_MS = 1000;
export const DEFAULT_RETRY_FACTOR = 2;
export const DEFAULT_RETRY_MAX_DELAY_MS = 60 * 60 * 1000;

const NO_DURATION =
  "This is not a duration: write `500ms`, `10s`, `5m`, `2h`, `1d`, or ISO 8601 without years and months, such as `PT5M`";

/**
 * Schema of a duration in a definition: its input is a text, its output milliseconds, more than 0 and at most 366 days. `says` describes it
 * to authors.
 */
export const duration = (says: string) =>
  v.pipe(
    v.string(NO_DURATION),
    v.regex(DURATION, NO_DURATION),
    // Before the transformation, because the JSON Schema contains only the steps before it.
    v.description(says),
    v.transform((text) => parseDuration(text) ?? 0),
    v.check((ms) => ms > 0 && ms <= LONGEST_DURATION_MS, "A duration is more than 0 and at most 366 days"),
  );
