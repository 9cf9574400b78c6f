import { callerOf, definePlugin, instanceScheme, ownerScheme, ports, type RequestHead } from "@portico/core";
import { toColumns, toWorkColumns } from "./columns.ts";
import { measurementsConfig } from "./config.ts";
import { measurementsContract } from "./contract.ts";
import { measurementsErrors } from "./errors.ts";

export type { Counted, Counters } from "./config.ts";

const DEFAULT_MS = 24 * 60 * 60_000;

/**
 * `GET /api/measurements`, `GET /api/measurements/work` and `GET /api/counters` on surface `agent`: model calls and ended work over time, and counts
 * since the start of the process.
 */
export const measurements = definePlugin({
  name: "measurements",
  summary: "Calls of models and ended work over time, with latencies, failures and costs, and counts of this process.",
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
    async overTime({ query: { from, to, step, by, top, ...where }, fail }) {
      try {
        const asked = { ...timeOf(from, to, clock), step, by, top, where };
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
    async workOverTime({ query: { from, to, ...asked }, fail }) {
      try {
        const { steps, series, timeZone } = await usage.work({ ...timeOf(from, to, clock), ...asked });
        return { timeZone, steps: steps.map((at) => new Date(at).toISOString()), series: series.map(toWorkColumns) };
      } catch (error) {
        throw error instanceof ports.UsageTooWide ? fail.too_many_steps(undefined, undefined, error) : error;
      }
    },
    counters: () => counted.counters(),
  }),
});

/** Without a beginning, a day. */
function timeOf(from: Date | undefined, to: Date | undefined, clock: ports.Clock) {
  const until = to?.getTime() ?? clock.now() + 1;
  return { since: from?.getTime() ?? until - DEFAULT_MS, until };
}
