import { callerOf, definePlugin, instanceScheme, ownerScheme, ports, type RequestHead } from "@portico/core";
import { measurementsConfig } from "./config.ts";
import { measurementsContract } from "./contract.ts";
import { measurementsErrors } from "./errors.ts";

export type { Counted, Counters } from "./config.ts";

const DEFAULT_MS = 24 * 60 * 60_000;

/** `GET /api/measurements` and `GET /api/counters` on surface `agent`: model calls over time, and counts since the start of the process. */
export const measurements = definePlugin({
  name: "measurements",
  summary: "Calls of models over time, with latencies, failures and costs, and counts of this process.",
  config: measurementsConfig,
  needs: { usage: ports.usage, identity: ports.identity, clock: ports.clock },
  contract: measurementsContract,
  security: { user: instanceScheme, owner: ownerScheme },
  guards: ({ identity }) => {
    const user = async (head: RequestHead, signal: AbortSignal) => {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw measurementsErrors.unauthorized();
      return caller;
    };
    return {
      user,
      async owner(head, signal) {
        const caller = await user(head, signal);
        if (caller.role !== "owner") throw measurementsErrors.owner_required();
        return caller;
      },
    };
  },
  setup: ({ usage, clock }, { counted }) => ({
    async overTime({ query: { from, to, step, by, top }, fail }) {
      const until = to?.getTime() ?? clock.now() + 1;
      const since = from?.getTime() ?? until - DEFAULT_MS;
      try {
        const { steps, series, currency, timeZone } = await usage.series({ since, until, step, by, top });
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
    counters: () => counted.counters(),
  }),
});

/** One list per number, which is what charts draw. */
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
