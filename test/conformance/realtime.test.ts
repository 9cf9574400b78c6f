import { createLoopback, type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { defineAdapter, ports } from "@portico/core";
import { afterEach } from "vitest";
import { type CrosswsHost, openCrosswsHost } from "../harness/crossws-host.ts";
import { openRealtimeHost, type RealtimeHost } from "../harness/realtime-host.ts";
import { clientKinds, openSocketHost, type SocketHost } from "../harness/socket-host.ts";
import { connectWebSocket } from "../harness/web-socket-client.ts";
import { type RealtimeClient, realtimeConformance } from "./realtime.ts";

realtimeConformance("loopback", () => ({
  adapter: loopbackRealtime({ loopback: createLoopback() }),
  async connect(opened, path, hello, last) {
    const client = await (opened as Loopback).connect(hello, { surface: "agent", path, ...(last !== undefined && { last }) });
    return {
      emit: (event, payload) => client.emit(event, payload),
      on: (event, listener) => client.on(event, listener),
      place: () => client.place,
      leave: () => client.leave(),
    };
  },
}));

/** What the real client remembers. */
interface Known {
  readonly _pid?: string;
  readonly _lastOffset?: string;
}

let host: (RealtimeHost & Partial<Pick<SocketHost, "connect">>) | CrosswsHost | undefined;
afterEach(async () => {
  await host?.[Symbol.asyncDispose]();
  host = undefined;
});

const hosted = async <H extends NonNullable<typeof host>>(opening: Promise<H>): Promise<H> => {
  const opened = await opening;
  host = opened;
  return opened;
};

/** What an app fills these ports with; the adapter under test stands outside of that app. */
const others = [
  defineAdapter({ name: "test/paths", port: ports.nodePaths, needs: {}, open: () => host!.nodePaths })(),
  defineAdapter({ name: "test/sockets", port: ports.webSocketPaths, needs: {}, open: () => host!.webSocketPaths })(),
  memoryTelemetry({ telemetry: createMemoryTelemetry() }),
];

for (const [kind, transports] of Object.entries(clientKinds)) {
  realtimeConformance(
    `Socket.IO, ${kind}`,
    async () => {
      const host = await hosted(openSocketHost());
      return {
        adapter: socketIoRealtime({}),
        async connect(_opened, path, hello, last) {
          // As the client does by itself when its connection breaks: it presents what it knows beside its hello.
          const presented = last === undefined ? hello : { pid: "any", offset: last, ...(hello as object) };
          const client = await host.connect(presented, { path, transports: [...transports] });
          const known = client as unknown as Known;
          return {
            place: () => known._lastOffset ?? known._pid?.slice(known._pid.indexOf(".") + 1),
            emit: (event, payload) => void client.emit(event, payload),
            on: (event, listener) => void client.on(event, listener),
            leave: () => void client.disconnect(),
          };
        },
      };
    },
    { others },
  );
}

/** A plain WebSocket as the suite wants it. */
async function plainClient(url: string, hello: unknown, last?: string): Promise<RealtimeClient> {
  const client = await connectWebSocket(url, hello, { last });
  let place = client.welcome["place"] as string | undefined;
  client.socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data as string) as { place?: string };
    place = frame.place ?? place;
  });
  return {
    place: () => place,
    emit: (event, payload) => client.send({ type: "event", event, payload }),
    on(event, listener) {
      if (event === "disconnect") return void client.closed.then(listener);
      client.socket.addEventListener("message", ({ data }) => {
        const frame = JSON.parse(data as string) as { type: string; event?: string; payload?: unknown };
        if (frame.type === "event" && frame.event === event) listener(frame.payload);
      });
    },
    leave: () => client.socket.close(),
  };
}

realtimeConformance(
  "WebSocket, on a Node server",
  async () => {
    const { origin } = await hosted(openRealtimeHost(loopbackRealtime({})));
    return {
      adapter: webSocketRealtime({}),
      connect: (_opened, path, hello, last) => plainClient(origin + path, hello, last),
    };
  },
  { others },
);

realtimeConformance(
  "WebSocket, on a host of crossws/server that takes a fetch function",
  async () => {
    const { origin } = await hosted(openCrosswsHost(loopbackRealtime({})));
    return {
      adapter: webSocketRealtime({}),
      connect: (_opened, path, hello, last) => plainClient(`${origin}/agent${path}`, hello, last),
    };
  },
  { others },
);
