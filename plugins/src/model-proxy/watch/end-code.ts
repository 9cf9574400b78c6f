import { ports } from "@portico/core";

/** Why an answer that began successfully ended with an error: `error` in its log line, span and metrics. */
export type EndCode =
  /** The connection broke, or the answer ended before it was finished. */
  | "upstream_broken"
  /** Silence for longer than the provider's `idleMs`. */
  | "upstream_timeout"
  /** The upstream sent an error inside its answer. */
  | "upstream_error"
  /** The caller left before the answer was finished. */
  | "caller_left";

/** The code of an error that broke an answer's body. */
export function codeOfBreak(error: Error): EndCode {
  return error.name === ports.ModelTimeout.name ? "upstream_timeout" : "upstream_broken";
}
