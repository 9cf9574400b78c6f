import { definePlugin, instanceAccess, ports } from "@portico/core";
import * as v from "valibot";
import { type Limits, limitsContract } from "./contract.ts";

export type { Limit, Limits } from "./contract.ts";

/** `GET /api/limits` on surface `agent`: the limits of the areas of this app. */
export const limitsPage = definePlugin({
  name: "limits",
  summary: "The limits of this instance, and where they are set.",
  config: v.strictObject({
    /** The limits of the host's settings. Called for each request. */
    limits: v.custom<() => Limits>((value) => typeof value === "function", "a function"),
  }),
  needs: { ...instanceAccess.needs, areas: ports.areas },
  contract: limitsContract,
  security: { instance: instanceAccess.security! },
  guards: (given) => ({ instance: instanceAccess.guard(given) }),
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
