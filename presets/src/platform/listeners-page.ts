import { definePlugin, type Plugin, ports } from "@portico/core";
import * as v from "valibot";
import { instanceGuard } from "./instance-guard.ts";
import { listenersContract } from "./listeners-contract.ts";
import type { Listeners } from "./platform-options.ts";

/** `GET /api/listeners` of the agent service, with one of its tokens. Whoever assembles an app and listens for it says where. */
export function listenersPage(listeners: Listeners): Plugin {
  const plugin = definePlugin({
    name: "listeners",
    summary: "Where this process listens.",
    config: v.strictObject({}),
    needs: { identity: ports.identity },
    contract: listenersContract,
    guards: ({ identity }) => ({ instance: instanceGuard(identity) }),
    setup: () => ({
      listeners: () => ({
        listeners: Object.fromEntries(Object.entries(listeners()).map(([surface, url]) => [surface, { url }])),
      }),
    }),
  });
  return plugin({});
}
