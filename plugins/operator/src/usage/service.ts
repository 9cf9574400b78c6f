import { callerGuard, definePlugin, instanceScheme, ports } from "@portico/core";
import * as v from "valibot";
import { usageContract, usageErrors } from "./contract.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DEFAULT_MS = 24 * HOUR_MS;

/** `GET /api/usage` on surface `agent`: what models were used for. The owner reads everything, members their own. */
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
      if (who.role !== "owner" && who.userId === undefined) throw fail.user_required();
      if (who.role !== "owner" && asked.userId !== undefined && asked.userId !== who.userId) throw fail.not_yours();
      const where = who.role === "owner" ? asked : { ...asked, userId: who.userId };
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
  }),
});

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
