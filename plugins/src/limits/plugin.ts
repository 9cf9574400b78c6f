import { callerOf, definePlugin, instanceScheme, ports } from "@portico/core";
import { limitsConfig } from "./config.ts";
import { limitsContract, limitsErrors } from "./contract.ts";

export type { Limit, Limits } from "./config.ts";

/** `GET /api/limits` on surface `agent`: the limits of the areas of this app. */
export const limitsPage = definePlugin({
  name: "limits",
  summary: "The limits of this instance, and where they are set.",
  config: limitsConfig,
  needs: { areas: ports.areas, identity: ports.identity },
  contract: limitsContract,
  security: { instance: instanceScheme },
  guards: ({ identity }) => ({
    async instance(head, signal) {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw limitsErrors.unauthorized();
      return caller;
    },
  }),
  setup: ({ areas }, { limits }) => ({
    async limits() {
      const names = new Set(areas.map(({ name }) => name));
      const all = limits();
      return {
        ...(all.currency !== undefined && { currency: all.currency }),
        limits: all.limits
          .filter(({ area }) => names.has(area))
          .map(({ area: _area, value, ...limit }) => ({ ...limit, value: value ?? null })),
      };
    },
  }),
});
