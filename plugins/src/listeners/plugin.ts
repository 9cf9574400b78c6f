import { definePlugin, instanceAccess } from "@portico/core";
import { listenersConfig } from "./config.ts";
import { listenersContract } from "./contract.ts";

export type { Listeners } from "./config.ts";

/** `GET /api/listeners` on surface `agent`: the addresses of the surfaces, as the host knows them. The web console uses it. */
export const listeners = definePlugin({
  name: "listeners",
  summary: "The addresses of the instance's surfaces.",
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
