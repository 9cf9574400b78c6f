import { createLoopback, type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { defineAdapter, ports } from "@portico/core";
import { afterEach } from "vitest";
import { clientKinds, openSocketHost, type SocketHost } from "../harness/socket-host.ts";
import { realtimeConformance } from "./realtime.ts";

realtimeConformance("loopback", () => ({
  adapter: loopbackRealtime({ loopback: createLoopback() }),
  connect: (opened, path, hello) => (opened as Loopback).connect(hello, { surface: "agent", path }),
}));

let host: SocketHost | undefined;
afterEach(async () => {
  await host?.[Symbol.asyncDispose]();
  host = undefined;
});

/** What an app fills `node-paths` with; the adapter under test stands outside of that app. */
const pathsOfHost = defineAdapter({ name: "test/paths", port: ports.nodePaths, needs: {}, open: () => host!.nodePaths });

for (const [kind, transports] of Object.entries(clientKinds)) {
  realtimeConformance(
    `Socket.IO, ${kind}`,
    async () => {
      host = await openSocketHost();
      return {
        adapter: socketIoRealtime({}),
        async connect(_opened, path, hello) {
          const client = await host!.connect(hello, { path, transports: [...transports] });
          return {
            emit: (event, payload) => void client.emit(event, payload),
            on: (event, listener) => void client.on(event, listener),
            leave: () => void client.disconnect(),
          };
        },
      };
    },
    { others: [pathsOfHost(), memoryTelemetry({ telemetry: createMemoryTelemetry() })] },
  );
}
