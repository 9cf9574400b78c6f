import {
  accessErrors,
  callFilters,
  defineContract,
  defineErrors,
  ownerErrors,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";
import { rangeErrors, rangeParameters } from "../usage/contract.ts";

/** Errors of reading measurements. */
export const measurementsErrors = {
  ...ownerErrors("Only the instance's owner may read measurements over time"),
  ...rangeErrors,
  ...defineErrors({
    too_many_steps: { status: 400, message: "The answer would have too many steps: ask for less time or longer steps" },
  }),
};

/** Fields of model calls that have a series for each value. */
export const SERIES_FIELDS = ["source", "provider", "model", "userId", "agentId", "workflowId", "tokenId"] as const;
/** How long a step may be. */
export const STEPS = ["minute", "hour", "day"] as const;

/** Kinds of ended work. */
export const WORK_KINDS = ["turn", "run", "webhook", "request"] as const;

/** Which steps and how many series a query wants. */
const wanted = {
  ...rangeParameters,
  step: v.optional(v.picklist(STEPS), "hour"),
  top: v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d?$/), v.transform(Number), v.maxValue(20)), "8"),
};
/** The steps of an answer. */
const answered = {
  /** IANA time zone of steps of a day. */
  timeZone: v.string(),
  /** ISO 8601 of the beginning of each step. The lists of a series have one number for each. */
  steps: v.array(v.string()),
};
const count = v.number();
const counts = v.array(count);
/** Milliseconds. Null in a step without a measured call. */
const latencies = v.array(v.nullable(v.number()));

const series = v.object({
  /** The value of `by`. Absent for calls that do not have the field, without `by`, and if `isRest`. */
  value: v.optional(v.string()),
  /** All values that have no series of their own. */
  isRest: v.boolean(),
  calls: counts,
  failed: counts,
  unknown: counts,
  inputTokens: counts,
  outputTokens: counts,
  /** Absent without prices. */
  cost: v.optional(counts),
  unpriced: v.optional(counts),
  /** Milliseconds of calls that did not fail. */
  durationP50: latencies,
  durationP95: latencies,
  /** Milliseconds until streamed answers began. */
  firstTokenP50: latencies,
  firstTokenP95: latencies,
});

const workSeries = v.object({
  /** The kind, or the name if the query has a kind. Absent if `isRest`. */
  value: v.optional(v.string()),
  /** All names that have no series of their own. */
  isRest: v.boolean(),
  completed: counts,
  failed: counts,
  cancelled: counts,
  interrupted: counts,
  /** Milliseconds of completed work. */
  durationP50: latencies,
  durationP95: latencies,
});

/** What the instance measures, on the agent service: an extension of the specification. */
export const measurementsContract = defineContract(
  { surface: "agent", auth: "user", envelope: pageEnvelope },
  {
    overTime: {
      method: "GET",
      path: "/api/measurements",
      auth: "owner",
      summary: "Read calls, failures, tokens, costs and latencies of models over time",
      query: readParameters({
        ...wanted,
        by: v.optional(v.picklist(SERIES_FIELDS)),
        /** Which values have series of their own: those with the most calls, or with the most cost. Without prices, those with the most tokens. */
        order: v.optional(v.picklist(["calls", "cost"]), "calls"),
        ...callFilters,
      }),
      success: reply.json(
        v.object({
          /** The currency of `cost`. Absent without prices. */
          currency: v.optional(v.string()),
          ...answered,
          series: v.array(series),
        }),
      ),
      errors: measurementsErrors,
    },
    workOverTime: {
      method: "GET",
      path: "/api/measurements/work",
      auth: "owner",
      summary: "Read how turns, workflow runs, webhook events and requests ended over time",
      query: readParameters({
        ...wanted,
        kind: v.optional(v.picklist(WORK_KINDS)),
      }),
      success: reply.json(
        v.object({
          ...answered,
          series: v.array(workSeries),
        }),
      ),
      errors: measurementsErrors,
    },
    counters: {
      method: "GET",
      path: "/api/counters",
      summary: "Read what this process counted since its start",
      query: readParameters({}),
      success: reply.json(
        v.object({
          requests: count,
          failedRequests: count,
          modelCalls: count,
          inputTokens: count,
          outputTokens: count,
          residentBytes: count,
          uptimeSeconds: count,
        }),
      ),
      errors: accessErrors,
    },
  },
);
