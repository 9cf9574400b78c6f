/** Bytes of a trigger's body. */
export const TRIGGER_BYTES = 1024 * 1024;
/** Bytes of bodies with the text of a definition. JSON may write each byte of the text as two. */
export const DEFINITION_BODY_BYTES = 2 * 1024 * 1024 + 64 * 1024;
/** Definitions that are checked at the same time for editors, and those that wait for it. */
export const CHECKS = { atOnce: 2, waiting: 16 } as const;
/** Warnings are looked for in texts up to this length, because that blocks the event loop. */
export const LINT_CHARACTERS = 64 * 1024;
/** Maximum bytes of the cases of one call, because parsing them blocks the event loop. */
export const CASES_BYTES = 128 * 1024;
/** Time for the cases of one call, in milliseconds. */
export const CASES_MS = 20_000;
/** Bytes of the bodies of the other calls. The values of an approval may be a long form. */
export const CALL_BYTES = 1024 * 1024;
/** Characters of the header `Idempotency-Key`, and of `idempotencyKey`. */
export const IDEMPOTENCY_KEY_LENGTH = 256;
/** How long a call with the header `Idempotency-Key` can be repeated, in milliseconds: longer than the retries of most senders. */
export const IDEMPOTENCY_MS = 24 * 60 * 60_000;
/** Characters of the comment of a decision. */
export const COMMENT_LENGTH = 4096;
/** Maximum nesting of workflows that run workflows, also through agents. */
export const WORKFLOW_DEPTH = 8;
/** Maximum runs that execute at the same time. Runs that only wait do not count. */
export const RUN_CONCURRENCY = 1024;
/** Maximum runs that wait because of `concurrency`, for each workflow and key. One record lists them. */
export const QUEUED_RUNS = 1000;
/** Entries of a run's ledger are buffered, and written when they reach this number of bytes. */
export const LEDGER_BYTES = 256 * 1024;
/**
 * Maximum bytes of entries in one place of the log. A larger entry omits its inputs. Together with the final outputs, which are no
 * larger than a node's outputs, it stays below the limit of the log.
 */
export const LEDGER_CHUNK_BYTES = 8 * 1024 * 1024;
/** Maximum number of texts, and of their characters, in a run's sensitive outputs. Everything that is shown or stored is searched for each text. */
export const SENSITIVE_TEXTS = 10_000;
export const SENSITIVE_CHARACTERS = 4 * 1024 * 1024;
/** Maximum characters of a stored error message. */
export const ERROR_CHARACTERS = 4096;
/** Maximum files of a run. */
export const RUN_FILES_MOST = 1000;
/** Lifetime of execution grants: minimum, default and maximum. */
export const GRANT_MS = { least: 1000, usual: 600_000, most: 366 * 24 * 60 * 60_000 } as const;
/** Lifetime of the short-lived tokens of the workflow service. */
export const SHORT_LIVED_MS = 600_000;
/** Runs of which a follower of gates is told. */
export const FOLLOWED_GATES = 200;
/** Readers of events wait this long before they connect again. */
export const RECONNECT_MS = 3_000;
/** The same, if another reader took over or the run has ended: a day. */
export const STAY_AWAY_MS = 24 * 60 * 60_000;

/** How the notification of a gate is retried: the last of the attempts begins about eleven minutes after the first. */
export const NOTIFICATION_RETRY = { attempts: 6, delayMs: 2_000, factor: 4, maxDelayMs: 600_000 } as const;

/** Time for all nodes with `if: always` after a run has failed, and then for `onFailure`. */
export const WIND_UP_MS = 600_000;

/** Maximum differences between two versions of a definition that are listed. */
export const VERSION_CHANGES = 200;
/** Maximum characters of a text by which a run can be found. Longer texts are not searched. */
export const FIELD_CHARACTERS = 200;
/** Maximum parameters, and maximum outputs, of a search for runs. */
export const SEARCHED_FIELDS = 8;
