import { defineAdapter, ports } from "@portico/core";

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
