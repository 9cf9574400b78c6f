import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, type App, createApp, defineContract, definePlugin, ports, reply, type Surface } from "@portico/core";
import { type Attachment, attach, toNodeHandler } from "@portico/core/node";
import * as v from "valibot";

/** An app with a realtime adapter, its surface `agent` on a server of its own; `workflow` is there, too. */
export interface RealtimeHost extends AsyncDisposable {
  readonly realtime: ports.Realtime;
  readonly nodePaths: ports.NodePaths;
  readonly webSocketPaths: ports.WebSocketPaths;
  readonly telemetry: MemoryTelemetry;
  readonly surface: (name: string) => Surface;
  readonly server: Server;
  readonly attachment: Attachment;
  readonly origin: string;
  /** Close the app alone, as a service does that stops. */
  closeApp(): Promise<void>;
}

/** The app alone: on no server. */
export async function openRealtimeApp(adapter: Adapter<typeof ports.realtime>) {
  const telemetry = createMemoryTelemetry();
  const opened: { given?: Pick<RealtimeHost, "realtime" | "nodePaths" | "webSocketPaths"> } = {};
  const plugin = definePlugin({
    name: "sockets",
    config: v.strictObject({}),
    needs: { realtime: ports.realtime, nodePaths: ports.nodePaths, webSocketPaths: ports.webSocketPaths },
    contract,
    setup(given) {
      opened.given = given;
      return { agent: () => "agent", workflow: () => "workflow" };
    },
  });
  const app: App = await createApp({
    name: "sockets",
    adapters: [adapter, memoryTelemetry({ telemetry })],
    plugins: [plugin({})],
  });
  return { app, telemetry, ...opened.given! };
}

export async function openRealtimeHost(adapter: Adapter<typeof ports.realtime>): Promise<RealtimeHost> {
  const { app, ...given } = await openRealtimeApp(adapter);
  const server = createServer(toNodeHandler(app.surface("agent"))).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    ...given,
    server,
    attachment: attach(server, app.surface("agent")),
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    surface: (name) => app.surface(name),
    closeApp: () => app.close(),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      await app.close();
      server.closeIdleConnections();
      await closed;
    },
  };
}

const route = (surface: string) =>
  ({ surface, method: "GET", path: "/hello", summary: "", success: reply.json(v.string()) }) as const;
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
  { agent: route("agent"), workflow: route("workflow") },
);
