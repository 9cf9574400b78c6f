import * as v from "valibot";
import { isExistingDay } from "./time-text.ts";

/** Limits of searches for runs. */
export const RUN_SEARCH = {
  /** Maximum words of a search, and maximum characters of its words. */
  words: 8,
  characters: 200,
  /** Words of each text of a run by which it is found. */
  textWords: 16,
  /** Runs of a page: default and maximum. */
  page: { usual: 20, most: 200 },
} as const;

const FORM = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** What `searchTime` accepts, for people. */
export const SEARCH_TIME = "a date, or a time with its zone, in ISO 8601";

/** A time in the query of a search. A time without a zone would mean another time in each process. */
export const searchTime = v.pipe(
  v.string(),
  v.regex(FORM, SEARCH_TIME),
  v.check((written) => isExistingDay(written) && !Number.isNaN(Date.parse(written)), SEARCH_TIME),
);
