import { callerGuard, definePlugin, instanceScheme, ownerGuard, ownerScheme, ports } from "@portico/core";
import { daysOf } from "@portico/core/kit";
import * as v from "valibot";
import { spanOf } from "../usage/range.ts";
import { measurementsContract, measurementsErrors } from "./contract.ts";

/** What a process counted since its start. */
export interface Counters {
  readonly requests: number;
  /** Requests with status 500 or higher, or whose answer broke. */
  readonly failedRequests: number;
  /** Through the proxy, of agents and of workflow nodes. */
  readonly modelCalls: number;
  /** As far as providers report them. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly residentBytes: number;
  readonly uptimeSeconds: number;
}

/** An object that counts. `createPrometheusMetrics()` of `@portico/adapters/telemetry/prometheus` creates one. */
export interface Counted {
  counters(): Counters | Promise<Counters>;
}

/**
 * `GET /api/measurements`, `GET /api/measurements/work` and `GET /api/counters` on surface `agent`: model calls and ended work over time, and counts
 * since the start of the process.
 */
export const measurements = definePlugin({
  name: "measurements",
  summary: "Calls of models and ended work over time, with latencies, failures and costs, and counts of this process.",
  config: v.strictObject({
    counted: v.custom<Counted>(
      (value) => typeof (value as Counted | undefined)?.counters === "function",
      "an object that counts",
    ),
  }),
  needs: { usage: ports.usage, identity: ports.identity, clock: ports.clock },
  contract: measurementsContract,
  security: { user: instanceScheme, owner: ownerScheme },
  guards: ({ identity }) => ({
    user: callerGuard(identity, measurementsErrors),
    owner: ownerGuard(identity, measurementsErrors),
  }),
  setup: ({ usage, clock }, { counted }) => ({
    async overTime({ query: { range, from, to, step, by, top, order, ...where }, fail }) {
      const span = spanOf({ range, from, to }, clock.now(), daysOf(usage.timeZone));
      if (!span) throw fail.invalid_range();
      try {
        const asked = { since: span.since, until: span.until, step, by, top, order, where };
        const { steps, series, currency, timeZone } = await usage.series(asked);
        return {
          ...(currency !== undefined && { currency }),
          timeZone,
          steps: steps.map((at) => new Date(at).toISOString()),
          series: series.map((one) => toColumns(one, currency !== undefined)),
        };
      } catch (error) {
        throw error instanceof ports.UsageTooWide ? fail.too_many_steps(undefined, undefined, error) : error;
      }
    },
    async workOverTime({ query: { range, from, to, ...asked }, fail }) {
      const span = spanOf({ range, from, to }, clock.now(), daysOf(usage.timeZone));
      if (!span) throw fail.invalid_range();
      try {
        const { steps, series, timeZone } = await usage.work({ since: span.since, until: span.until, ...asked });
        return { timeZone, steps: steps.map((at) => new Date(at).toISOString()), series: series.map(toWorkColumns) };
      } catch (error) {
        throw error instanceof ports.UsageTooWide ? fail.too_many_steps(undefined, undefined, error) : error;
      }
    },
    counters: () => counted.counters(),
  }),
});

/** A series of model calls as one list per number, which is what charts draw. */
function toColumns({ value, isRest, points }: ports.UsageSeries, hasPrices: boolean) {
  const sums = (name: keyof ports.UsageSums) => points.map((point) => point.sums[name]);
  const latency = (name: "duration" | "firstToken", share: keyof ports.UsageLatency) =>
    points.map((point) => point[name][share] ?? null);
  return {
    ...(value !== undefined && { value }),
    isRest,
    calls: sums("calls"),
    failed: sums("failed"),
    unknown: sums("unknown"),
    inputTokens: sums("inputTokens"),
    outputTokens: sums("outputTokens"),
    ...(hasPrices && { cost: sums("cost"), unpriced: sums("unpriced") }),
    durationP50: latency("duration", "p50"),
    durationP95: latency("duration", "p95"),
    firstTokenP50: latency("firstToken", "p50"),
    firstTokenP95: latency("firstToken", "p95"),
  };
}

/** The same of ended work. */
function toWorkColumns({ value, isRest, points }: ports.EndedWorkSeries) {
  const counts = (outcome: ports.EndedWorkOutcome) => points.map((point) => point.counts[outcome]);
  return {
    ...(value !== undefined && { value }),
    isRest,
    completed: counts("completed"),
    failed: counts("failed"),
    cancelled: counts("cancelled"),
    interrupted: counts("interrupted"),
    durationP50: points.map(({ duration }) => duration.p50 ?? null),
    durationP95: points.map(({ duration }) => duration.p95 ?? null),
  };
}
