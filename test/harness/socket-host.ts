import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type SocketIoOptions, socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp, defineContract, definePlugin, ports, reply, type Surface } from "@portico/core";
import { type Attachment, attach, toNodeHandler } from "@portico/core/node";
import { io, type ManagerOptions, type Socket, type SocketOptions } from "socket.io-client";
import * as v from "valibot";

export type ClientOptions = Partial<ManagerOptions & SocketOptions>;

/** An app with realtime over Socket.IO, its surface `agent` on a server of its own; `workflow` is there, too. */
export interface SocketHost extends AsyncDisposable {
  readonly realtime: ports.Realtime;
  readonly nodePaths: ports.NodePaths;
  readonly telemetry: MemoryTelemetry;
  readonly surface: (name: string) => Surface;
  readonly server: Server;
  readonly attachment: Attachment;
  readonly origin: string;
  /** Connect the real client. Rejects with `code` and `message` of a refusal. Whoever is still there in the end is disconnected. */
  connect(hello?: unknown, options?: ClientOptions): Promise<Socket>;
  /** Close the app alone, as a service does that stops. */
  closeApp(): Promise<void>;
}

/** The ways in which the real client connects. */
export const clientKinds: Readonly<Record<string, readonly ("polling" | "websocket")[]>> = {
  "websocket only": ["websocket"],
  "polling only": ["polling"],
  "polling, then websocket": ["polling", "websocket"],
};

export async function openSocketHost(options?: SocketIoOptions): Promise<SocketHost> {
  const telemetry = createMemoryTelemetry();
  const opened: { given?: { readonly realtime: ports.Realtime; readonly nodePaths: ports.NodePaths } } = {};
  const plugin = definePlugin({
    name: "sockets",
    config: v.strictObject({}),
    needs: { realtime: ports.realtime, nodePaths: ports.nodePaths },
    contract,
    setup(given) {
      opened.given = given;
      return { agent: () => "agent", workflow: () => "workflow" };
    },
  });
  const app = await createApp({
    name: "sockets",
    adapters: [socketIoRealtime(options), memoryTelemetry({ telemetry })],
    plugins: [plugin({})],
  });
  const server = createServer(toNodeHandler(app.surface("agent"))).listen(0, "127.0.0.1");
  await once(server, "listening");
  const attachment = attach(server, app.surface("agent"));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clients: Socket[] = [];
  return {
    ...opened.given!,
    telemetry,
    server,
    attachment,
    origin,
    surface: (name) => app.surface(name),
    closeApp: () => app.close(),
    connect(hello = {}, more = {}) {
      const client = io(origin, { path: "/live/", auth: hello as object, reconnection: false, forceNew: true, ...more });
      clients.push(client);
      return connected(client);
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.disconnect();
      const closed = once(server, "close");
      server.close();
      await app.close();
      server.closeIdleConnections();
      await closed;
    },
  };
}

/** The client stands connected; rejects with code and message where it is refused. */
export function connected(client: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    client.once("connect", () => resolve(client));
    client.once("connect_error", (error) =>
      reject(Object.assign(new Error(error.message), { code: (error as { data?: { code?: string } }).data?.code })),
    );
  });
}

/** The first argument of the next such event of a client, its manager or its engine: none of them is an emitter of Node. */
export function told(
  emitter: { once(event: never, listener: (what: unknown) => void): unknown },
  event: string,
): Promise<unknown> {
  return new Promise((resolve) => emitter.once(event as never, resolve));
}

const route = (surface: string) =>
  ({ surface, method: "GET", path: "/hello", summary: "", success: reply.json(v.string()) }) as const;
const contract = defineContract(
  { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
  { agent: route("agent"), workflow: route("workflow") },
);
