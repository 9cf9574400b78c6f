/** One contestant of sockets.bench.ts, in its own process: plain Socket.IO, or the realtime adapter in an app. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { systemClock } from "@portico/adapters/clock/system";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, createApp, definePlugin, ports } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import { conversationsRuns } from "@portico/plugins/conversations-runs";
import { testing } from "@portico/presets/testing";
import { Server } from "socket.io";
import * as v from "valibot";

export type ServerJob =
  | { readonly do: "listen"; readonly kind: "bare" | "portico" | "websocket" | "service" }
  | { readonly do: "memory" }
  /** One event to every socket per round. Without a pause, the rounds follow each other as fast as the event loop turns. */
  | { readonly do: "send"; readonly rounds: number; readonly gapMs: number };

export interface ServerResult {
  readonly origin?: string;
  /** Bytes that are in use after a collection, on the heap and beside it. */
  readonly used?: number;
  readonly resident?: number;
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
let sendToAll: (event: string, payload: unknown) => void;

process.on("message", (job: ServerJob) => void run(job).then((result) => process.send!(result)));

async function run(job: ServerJob): Promise<ServerResult> {
  if (job.do === "listen") return { origin: await LISTENERS[job.kind]() };
  if (job.do === "memory") return measureMemory();
  for (let round = 0; round < job.rounds; round++) {
    sendToAll("tick", { at: Number(process.hrtime.bigint()) });
    await new Promise((resolve) => (job.gapMs > 0 ? setTimeout(resolve, job.gapMs) : setImmediate(resolve)));
  }
  return {};
}

const LISTENERS = {
  bare: listenBare,
  portico: () => listenPortico(socketIoRealtime({})),
  websocket: () => listenPortico(webSocketRealtime({})),
  service: listenService,
};

async function measureMemory(): Promise<ServerResult> {
  for (let turn = 0; turn < 5; turn++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { used: heapUsed + external, resident: rss };
}

async function listenBare(): Promise<string> {
  const server = createServer();
  const io = new Server(server, { path: "/live/", serveClient: false, httpCompression: false, maxHttpBufferSize: 128 * 1024 });
  io.use((socket, next) => {
    socket.data = socket.handshake.auth["name"];
    next();
  });
  // One `send` per socket, as an app does that sends each client something different.
  sendToAll = (event, payload) => {
    for (const socket of io.sockets.sockets.values()) socket.emit(event, payload);
  };
  return listen(server);
}

async function listenPortico(realtime: Adapter): Promise<string> {
  const ids = new Set<string>();
  const plugin = definePlugin({
    name: "ticks",
    config: v.strictObject({}),
    needs: { realtime: ports.realtime },
    contract: {},
    setup({ realtime }, _config, scope) {
      const connections = realtime.serve<string>({
        surface: "agent",
        path: "/live/",
        admit: async (hello) => (hello as { name: string }).name,
        joined: ({ id }) => void ids.add(id),
        receive: () => {},
        gone: ({ id }) => void ids.delete(id),
      });
      scope.onClose(() => connections.close());
      sendToAll = (event, payload) => {
        for (const id of ids) connections.send(id, event, payload);
      };
      return {};
    },
  });
  const app = await createApp({
    name: "sockets",
    adapters: [realtime, memoryTelemetry({ telemetry: createMemoryTelemetry() })],
    plugins: [plugin({})],
  });
  const server = createServer(toNodeHandler(app.surface("agent")));
  attach(server, app.surface("agent"));
  return listen(server);
}

/** The whole agent service. What its channel stores per connection is counted, too. */
async function listenService(): Promise<string> {
  const app = await createApp({
    name: "service",
    extends: testing({}),
    adapters: [systemClock(), socketIoRealtime({})],
    plugins: [conversationsRuns({})],
  });
  const server = createServer(toNodeHandler(app.surface("agent")));
  attach(server, app.surface("agent"));
  return listen(server);
}

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1024 });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
