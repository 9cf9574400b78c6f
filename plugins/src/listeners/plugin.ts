import { definePlugin, instanceAccess } from "@portico/core";
import { listenersConfig } from "./config.ts";
import { listenersContract } from "./contract.ts";

export type { Listeners } from "./config.ts";

/** `GET /api/listeners` on surface `agent`: the addresses on which the host listens. The web console uses it. */
export const listeners = definePlugin({
  name: "listeners",
  summary: "The addresses of this process's listeners.",
  config: listenersConfig,
  needs: instanceAccess.needs,
  contract: listenersContract,
  security: { instance: instanceAccess.security! },
  guards: (given) => ({ instance: instanceAccess.guard(given) }),
  setup: (_given, { urls }) => ({
    listeners: () => ({
      listeners: Object.fromEntries(Object.entries(urls()).map(([surface, url]) => [surface, { url }])),
    }),
  }),
});
