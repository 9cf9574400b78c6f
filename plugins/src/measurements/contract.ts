import { defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";
import { measurementsErrors } from "./errors.ts";

/** Fields of model calls that have a series for each value. */
export const SERIES_FIELDS = ["source", "provider", "model", "userId", "agentId", "workflowId", "tokenId"] as const;
/** Areas that call models. */
const SOURCES = ["agent", "workflow", "proxy"] as const;
/** How long a step may be. */
export const STEPS = ["minute", "hour", "day"] as const;

/** Kinds of ended work. */
export const WORK_KINDS = ["turn", "run", "webhook", "request"] as const;

/** ISO 8601 with a zone: others would mean the time of the machine. */
const time = v.pipe(v.string(), v.isoTimestamp(), v.toDate());
const name = v.optional(v.pipe(v.string(), v.maxLength(256)));
const top = v.optional(v.pipe(v.string(), v.regex(/^[1-9]\d?$/), v.transform(Number), v.maxValue(20)), "8");
const count = v.number();
const counts = v.array(count);
/** Milliseconds. Null in a step without a measured call. */
const latencies = v.array(v.nullable(v.number()));
const { unauthorized, owner_required, too_many_steps } = measurementsErrors;

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
  {
    surface: "agent",
    auth: "user",
    envelope: (error) => ({ error: error.message, code: error.code }),
    faults: { invalid_request: measurementsErrors.invalid_request },
  },
  {
    overTime: {
      method: "GET",
      path: "/api/measurements",
      auth: "owner",
      summary: "Read calls, failures, tokens, costs and latencies of models over time (an extension)",
      query: v.strictObject({
        from: v.optional(time),
        to: v.optional(time),
        step: v.optional(v.picklist(STEPS), "hour"),
        by: v.optional(v.picklist(SERIES_FIELDS)),
        top,
        source: v.optional(v.picklist(SOURCES)),
        provider: name,
        model: name,
        userId: name,
        agentId: name,
        workflowId: name,
        tokenId: name,
      }),
      success: reply.json(
        v.object({
          /** The currency of `cost`. Absent without prices. */
          currency: v.optional(v.string()),
          /** IANA time zone of steps of a day. */
          timeZone: v.string(),
          /** ISO 8601 of the beginning of each step. The lists of a series have one number for each. */
          steps: v.array(v.string()),
          series: v.array(series),
        }),
      ),
      errors: { unauthorized, owner_required, too_many_steps },
    },
    workOverTime: {
      method: "GET",
      path: "/api/measurements/work",
      auth: "owner",
      summary: "Read how turns, workflow runs, webhook events and requests ended over time (an extension)",
      query: v.strictObject({
        from: v.optional(time),
        to: v.optional(time),
        step: v.optional(v.picklist(STEPS), "hour"),
        kind: v.optional(v.picklist(WORK_KINDS)),
        top,
      }),
      success: reply.json(
        v.object({
          /** IANA time zone of steps of a day. */
          timeZone: v.string(),
          /** ISO 8601 of the beginning of each step. The lists of a series have one number for each. */
          steps: v.array(v.string()),
          series: v.array(workSeries),
        }),
      ),
      errors: { unauthorized, owner_required, too_many_steps },
    },
    counters: {
      method: "GET",
      path: "/api/counters",
      summary: "Read what this process counted since its start (an extension)",
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
      errors: { unauthorized },
    },
  },
);
