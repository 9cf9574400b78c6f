import { callerGuard, definePlugin, instanceScheme, ports } from "@portico/core";
import { daysOf } from "@portico/core/kit";
import * as v from "valibot";
import { spanOf } from "./range.ts";
import { readTable } from "./report.ts";
import { usageContract, usageErrors } from "./contract.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DEFAULT_MS = 24 * HOUR_MS;

/** `GET /api/usage` and `GET /api/usage/table` on surface `agent`: what models were used for. The owner reads everything, members their own. */
export const usagePage = definePlugin({
  name: "usage",
  summary: "Calls of models, their tokens and costs, by time, user, agent, workflow, provider, model and safe token.",
  config: v.strictObject({}),
  needs: { usage: ports.usage, identity: ports.identity, clock: ports.clock },
  contract: usageContract,
  security: { user: instanceScheme },
  guards: ({ identity }) => ({ user: callerGuard(identity, usageErrors) }),
  setup: ({ usage, clock }) => ({
    async usage({ query, who, fail }) {
      const { since, until, step, by, ...asked } = query;
      const where = ownCalls(asked, who);
      const end = until?.getTime() ?? clock.now() + 1;
      const begin = since?.getTime() ?? end - DEFAULT_MS;
      // Buckets are whole: the first one is the one that contains the beginning.
      const from = begin - (begin % (step === "minute" ? MINUTE_MS : HOUR_MS));
      try {
        const { groups, currency } = await usage.read({ since: from, until: end, step, by, where });
        return {
          since: toText(from),
          until: toText(end),
          ...(currency !== undefined && { currency }),
          groups: groups.map(({ at, subject, sums: { cost, unpriced, ...sums } }) => ({
            at: toText(at),
            ...subject,
            ...sums,
            ...(currency !== undefined && { cost, unpriced }),
          })),
        };
      } catch (error) {
        throw error instanceof ports.UsageTooWide ? fail.too_many_groups(undefined, undefined, error) : error;
      }
    },
    async table({ query: { range, from, to, by, top, ...asked }, who, fail }) {
      const where = ownCalls(asked, who);
      const span = spanOf({ range, from, to, isWholeHours: true }, clock.now(), daysOf(usage.timeZone));
      if (!span) throw fail.invalid_range();
      const unit = range === "hour" ? "minute" : "hour";
      return readTable(usage, { span, by, where, top, unit }).catch((error: unknown) => {
        throw error instanceof ports.UsageTooWide ? fail.too_many_groups(undefined, undefined, error) : error;
      });
    },
  }),
});

/** Which calls a caller reads: the owner all of them, members their own. */
function ownCalls<T extends Partial<ports.UsageSubject>>(asked: T, { role, userId }: ports.Caller): T {
  if (role === "owner") return asked;
  if (userId === undefined) throw usageErrors.user_required();
  if (asked.userId !== undefined && asked.userId !== userId) throw usageErrors.not_yours();
  return { ...asked, userId };
}

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
