import { definePlugin, ports, createApp, defineContract, reply } from "@portico/core";
import { socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { io } from "socket.io-client";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type Listeners, openListeners } from "../../../presets/cli/src/listeners.ts";
import { serveNamed } from "../../harness/named-service.ts";
import { openDeafSocket, openRawSession } from "../../harness/raw-session.ts";
import { clientKinds, connected, told } from "../../harness/socket-host.ts";

/** Longer than any test: who waits for it, hangs. */
const GRACE_MS = 60_000;

describe("a listener of a preset", () => {
  it.each(Object.entries(clientKinds))("serves realtime clients, and ends them when it drains: %s", async (_kind, transports) => {
    await using started = await start();
    const client = io(started.origin, {
      path: "/live/",
      auth: { name: "ada" },
      transports: [...transports],
      reconnection: false,
    });
    await connected(client);
    const cut = told(client, "disconnect");
    expect(await started.listeners.drain(GRACE_MS)).toBe(0);
    expect(["transport close", "transport error"]).toContain(await cut);
    // Between two polls only the closing app can know that this client will not come again.
    await started.close();
    expect(started.service.seen).toEqual(["joined ada", "gone ada"]);
  });

  it("drains without waiting for polls, or for clients that do not read", async () => {
    await using started = await start();
    const deaf = await openDeafSocket(started.origin, { name: "deaf" });
    const poll = (await openRawSession(started.origin, { name: "polling" })).poll();
    const polled = expect(poll).rejects.toThrow();
    await started.service.saw("joined deaf");
    // The poll has arrived, and is held.
    expect(await started.service.connections.drained(started.service.idOf("polling"))).toBe(true);
    expect(await started.listeners.drain(GRACE_MS)).toBe(0);
    await polled;
    deaf.destroy();
  });

  it("lets a request finish first, and its realtime client hear of it", async () => {
    await using started = await start();
    const client = io(started.origin, { path: "/live/", auth: { name: "ada" }, transports: ["websocket"], reconnection: false });
    await connected(client);
    const answer = fetch(`${started.origin}/slow`);
    await started.asked;
    const drained = started.listeners.drain(GRACE_MS);
    client.emit("word", {});
    await started.service.saw("ada says word {}");
    const heard = told(client, "done");
    started.service.connections.send(client.id!, "done", {});
    await heard;
    started.finish("finished");
    expect(await (await answer).json()).toBe("finished");
    expect(await drained).toBe(0);
  });

  it("counts what it cuts in the end, and no realtime client", async () => {
    await using started = await start();
    const client = io(started.origin, { path: "/live/", auth: { name: "ada" }, transports: ["websocket"], reconnection: false });
    await connected(client);
    const answer = expect(fetch(`${started.origin}/slow`)).rejects.toThrow();
    await started.asked;
    expect(await started.listeners.drain(1)).toBe(1);
    await answer;
  });
});

async function start() {
  const asked = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<string>();
  const opened: { realtime?: ports.Realtime } = {};
  const plugin = definePlugin({
    name: "slow",
    config: v.strictObject({}),
    needs: { realtime: ports.realtime },
    contract: defineContract(
      { surface: "agent", auth: "open", envelope: (error) => ({ error: error.code }) },
      { slow: { method: "GET", path: "/slow", summary: "", success: reply.json(v.string()) } },
    ),
    setup(given) {
      opened.realtime = given.realtime;
      return {
        slow() {
          asked.resolve();
          return finished.promise;
        },
      };
    },
  });
  const app = await createApp({
    name: "listeners",
    adapters: [socketIoRealtime({}), memoryTelemetry({ telemetry: createMemoryTelemetry() })],
    plugins: [plugin({})],
  });
  const service = serveNamed(opened.realtime!);
  const listeners: Listeners = await openListeners(app, { addresses: { agent: { host: "127.0.0.1", port: 0 } } });
  return {
    service,
    listeners,
    origin: listeners.urls["agent"]!,
    asked: asked.promise,
    finish: finished.resolve,
    close: () => app.close(),
    [Symbol.asyncDispose]: () => app.close(),
  };
}
