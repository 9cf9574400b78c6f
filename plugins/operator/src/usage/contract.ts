import {
  accessErrors,
  callFilters,
  defineContract,
  defineErrors,
  isExistingDay,
  maxCharacters,
  modelCallers,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";

/** Errors of a time that a query names. */
export const rangeErrors = defineErrors({
  invalid_range: {
    status: 400,
    message: "A range ends after it begins, and is either a word or has its own beginning and end",
  },
});

/** Errors of reading usage. */
export const usageErrors = {
  ...accessErrors,
  ...rangeErrors,
  ...defineErrors({
    too_many_groups: {
      status: 400,
      message: "The answer would have too many groups: ask for less time, longer steps or fewer fields",
    },
    user_required: { status: 403, message: "A token without a user cannot read usage" },
    not_yours: { status: 403, message: "Members may read only their own usage" },
  }),
};

/** Fields of calls by which they are summed. */
export const USAGE_FIELDS = ["source", "provider", "model", "userId", "agentId", "workflowId", "tokenId"] as const;

/**
 * Times that have a word. `hour` and `day` are the last 60 minutes and the last 24 hours. All others are whole days of `usage.timeZone`: those of
 * `last-7-days` and `last-30-days` end with today, and `last-week` is from Monday to Sunday.
 */
export const USAGE_RANGES = [
  "hour",
  "day",
  "today",
  "yesterday",
  "last-7-days",
  "last-week",
  "last-30-days",
  "this-month",
  "last-month",
] as const;
/** A time that has a word. */
export type UsageRange = (typeof USAGE_RANGES)[number];

/** A day of `usage.timeZone`, or a time with a zone in ISO 8601. */
const dayOrTime = v.pipe(
  v.string(),
  maxCharacters(40),
  v.check(
    (text) => v.is(v.union([v.pipe(v.string(), v.isoDate()), v.pipe(v.string(), v.isoTimestamp())]), text),
    "a day or a time",
  ),
  // Offsets such as `+05` are not times in JavaScript.
  v.check((text) => isExistingDay(text) && !Number.isNaN(Date.parse(text)), "a day and a time that exist"),
);
/** Parts of a query that name a time: a word, or an own beginning and end. */
export const rangeParameters = {
  range: v.optional(v.picklist(USAGE_RANGES)),
  from: v.optional(dayOrTime),
  to: v.optional(dayOrTime),
};

/** ISO 8601 with a zone: others would mean the time of the machine. */
const time = v.pipe(v.string(), v.isoTimestamp(), v.check(isExistingDay, "a day that exists"), v.toDate());
const count = v.number();

const fields = v.pipe(
  v.string(),
  maxCharacters(128),
  v.transform((list) => list.split(",")),
  v.array(v.picklist(USAGE_FIELDS)),
);

const counts = {
  calls: count,
  refused: count,
  failed: count,
  unknown: count,
  inputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  outputTokens: count,
  /** Absent without prices. */
  cost: v.optional(count),
  unpriced: v.optional(count),
};

const group = v.object({
  /** ISO 8601. */
  at: v.string(),
  source: v.optional(modelCallers),
  provider: v.optional(v.string()),
  model: v.optional(v.string()),
  userId: v.optional(v.string()),
  agentId: v.optional(v.string()),
  workflowId: v.optional(v.string()),
  tokenId: v.optional(v.string()),
  ...counts,
});

const span = v.object({ since: v.string(), until: v.string() });
const row = v.object({
  /** The value of `by`. Absent for calls that do not have the field, and if `isRest`. */
  value: v.optional(v.string()),
  /** All values that have no row of their own. */
  isRest: v.boolean(),
  ...counts,
  /** The part of `shareOf`, from 0 to 1. Absent if there is nothing to share. */
  share: v.optional(count),
  before: v.object(counts),
});

const table = v.object({
  /** IANA time zone of the days. */
  timeZone: v.string(),
  since: v.string(),
  until: v.string(),
  /** What the figures are compared with. */
  before: span,
  /** The currency of `cost`. Absent without prices. */
  currency: v.optional(v.string()),
  shareOf: v.picklist(["cost", "tokens", "calls"]),
  rows: v.array(row),
  total: v.object({ ...counts, before: v.object(counts) }),
});

/** A field of calls. */
export type UsageField = (typeof USAGE_FIELDS)[number];
/** What models were used for in a time, by the values of a field: the most expensive first. */
export type UsageTable = v.InferOutput<typeof table>;
/** Sums of calls. */
export type UsageSumsShown = UsageTable["total"]["before"];

/** What models were used for, on the agent service: an extension of the specification. */
export const usageContract = defineContract(
  { surface: "agent", auth: "user", envelope: pageEnvelope },
  {
    usage: {
      method: "GET",
      path: "/api/usage",
      summary: "Read how many calls of models were made, and what they used",
      query: readParameters({
        since: v.optional(time),
        until: v.optional(time),
        step: v.optional(v.picklist(["minute", "hour", "day"])),
        by: v.optional(fields),
        ...callFilters,
      }),
      success: reply.json(
        v.object({
          since: v.string(),
          until: v.string(),
          /** The currency of `cost`. Absent without prices. */
          currency: v.optional(v.string()),
          groups: v.array(group),
        }),
      ),
      errors: usageErrors,
    },
    table: {
      method: "GET",
      path: "/api/usage/table",
      summary: "Read what models were used for by the values of a field, the most expensive first, and in the time before",
      query: readParameters({
        ...rangeParameters,
        by: v.optional(v.picklist(USAGE_FIELDS), "model"),
        top: v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d{0,3}$/), v.transform(Number), v.maxValue(1000)), "50"),
        ...callFilters,
      }),
      success: reply.json(table),
      errors: usageErrors,
    },
  },
);
