import type { Adapter, ports } from "@portico/core";
import { serve } from "crossws/server";
import { H3 } from "h3";
import { openRealtimeApp, type RealtimeHost } from "./realtime-host.ts";

export type CrosswsHost = Omit<RealtimeHost, "server" | "attachment">;

/** The app's surface `agent` below `/agent` of an h3 application, on crossws' own server, without Portico's entry point for Node. */
export async function openCrosswsHost(adapter: Adapter<typeof ports.realtime>): Promise<CrosswsHost> {
  const { app, ...given } = await openRealtimeApp(adapter);
  const host = new H3().get("/", () => "a page of the host's own").mount("/agent", { fetch: app.surface("agent").fetch });
  // The hooks are found on the answer to the request that asks for a WebSocket.
  const server = serve({ fetch: (request) => host.fetch(request), websocket: {}, hostname: "127.0.0.1", port: 0, silent: true });
  await server.ready();
  return {
    ...given,
    origin: server.url!.replace(/\/$/, ""),
    surface: (name) => app.surface(name),
    closeApp: () => app.close(),
    async [Symbol.asyncDispose]() {
      await app.close();
      await server.close(true);
    },
  };
}
