import { defineAdapter, definePlugin, ports } from "@portico/core";
import { agentRuntime } from "./agent-runtime.ts";
import { backgroundTurns } from "./background-turns.ts";
import { agentTurnsConfig } from "../config.ts";

export { MEMORY_TOOLS } from "../memory/memory-tools.ts";

/**
 * Agents that have turns, and no calls: for apps whose workflows or webhooks give turns to agents, and whose users do not talk to them. Fills the port
 * `backgroundTurns`, and `realtime` where the app has no other adapter for it. `conversationsRuns` stands in its place where users do.
 */
export const agentTurns = definePlugin({
  name: "agent-turns",
  summary: "Turns of agents that other areas start.",
  config: agentTurnsConfig,
  needs: {},
  contract: {},
  // Its apps have no call that decides an approval: a call that waited would wait for its whole time.
  provides: ({ background, ...runtime }) => [
    agentRuntime({ ...runtime, hasApprovals: false }),
    backgroundTurns(background),
    noClients(),
  ],
  setup: () => ({}),
});

/** The port `realtime` where no client can connect: turns of agents that only other areas begin have no listeners. */
export const noClients = defineAdapter({
  name: "conversations-runs/no-clients",
  port: ports.realtime,
  needs: {},
  open: (): ports.Realtime => ({
    serve: () => ({
      send: () => false,
      has: () => false,
      drained: async () => false,
      drop: () => false,
      close: async () => {},
    }),
  }),
});
