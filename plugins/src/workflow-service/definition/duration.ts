import { DURATION, parseDuration } from "@portico/core";
import * as v from "valibot";
import { LONGEST_DURATION_MS } from "./definition-limits.ts";

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
