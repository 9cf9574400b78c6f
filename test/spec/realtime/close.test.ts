import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { attach, toNodeHandler } from "@portico/core/node";
import { io } from "socket.io-client";
import { describe, expect, it } from "vitest";
import { serveNamed } from "../../harness/named-service.ts";
import { openDeafSocket, openRawSession, openRawSocket } from "../../harness/raw-session.ts";
import { clientKinds, connected, openSocketHost, type SocketHost, told } from "../../harness/socket-host.ts";

/** Connections of the server, as Node counts them. */
function connectionsOf({ server }: SocketHost): Promise<number> {
  return new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
}

describe("an app that closes", () => {
  it.each(Object.entries(clientKinds))(
    "ends connected clients without a goodbye, so that they look for it again: %s",
    async (_kind, transports) => {
      await using host = await openSocketHost();
      const service = serveNamed(host.realtime);
      const client = await host.connect({ name: "ada" }, { transports: [...transports], reconnection: true });
      const cut = told(client, "disconnect");
      await host.closeApp();
      expect(["transport close", "transport error"]).toContain(await cut);
      expect(client.active).toBe(true);
      expect(service.seen).toEqual(["joined ada", "gone ada"]);
    },
  );

  it("does not wait for open polls, slow readers, clients before their hello, or pending decisions", async () => {
    await using host = await openSocketHost();
    const asked = Promise.withResolvers<AbortSignal>();
    const service = serveNamed(host.realtime, {
      admit(hello, signal) {
        const { name } = hello as { name?: string };
        if (name) return Promise.resolve(name);
        asked.resolve(signal);
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    const session = await openRawSession(host.origin, { name: "polling" });
    const poll = session.poll();
    const deaf = await openDeafSocket(host.origin, { name: "deaf" });
    const silent = await openRawSocket(host.origin);
    const undecided = await openRawSocket(host.origin);
    undecided.send("40{}");
    await Promise.all([asked.promise, service.saw("joined deaf")]);
    const gone = once(host.server, "close");
    await host.closeApp();
    host.server.close();
    host.server.closeIdleConnections();
    expect((await asked.promise).aborted).toBe(true);
    expect(await (await poll).text()).toBe("1");
    await Promise.all([silent.closed, undecided.closed, gone]);
    expect(host.attachment.open.size).toBe(0);
    expect([...service.seen].sort()).toEqual(["gone deaf", "gone polling", "joined deaf", "joined polling"]);
    deaf.destroy();
    host.server.listen(0);
    await once(host.server, "listening");
  });

  it("answers its path like any that is not served", async () => {
    await using host = await openSocketHost();
    const service = serveNamed(host.realtime);
    await service.connections.close();
    expect((await fetch(`${host.origin}/live/?EIO=4&transport=polling`)).status).toBe(404);
    await expect(openRawSocket(host.origin)).rejects.toThrow("The WebSocket was refused");
  });

  it("leaves nothing on the server, however its clients came and went", async () => {
    await using host = await openSocketHost();
    const service = serveNamed(host.realtime);
    for (const transports of Object.values(clientKinds)) {
      const clients = await Promise.all(["a", "b"].map((name) => host.connect({ name }, { transports: [...transports] })));
      service.connections.drop(clients[0]!.id!);
      clients[1]!.disconnect();
    }
    await service.saw("gone b", 3);
    await service.connections.close();
    host.server.closeIdleConnections();
    await expect.poll(async () => [await connectionsOf(host), host.attachment.open.size]).toEqual([0, 0]);
  });
});

it("a service that starts again on the same path gets its clients back", async () => {
  await using host = await openSocketHost();
  const first = serveNamed(host.realtime);
  const client = await host.connect({ name: "ada" }, { reconnection: true, reconnectionDelay: 1, reconnectionDelayMax: 2 });
  await first.saw("joined ada");
  await first.connections.close();
  const second = serveNamed(host.realtime);
  await second.saw("joined ada");
  await expect.poll(() => client.connected).toBe(true);
});

it("two apps in one process do not see each other", async () => {
  await using one = await openSocketHost();
  await using other = await openSocketHost();
  const [here, there] = [serveNamed(one.realtime), serveNamed(other.realtime)];
  const client = await one.connect({ name: "ada" });
  await here.saw("joined ada");
  expect(there.seen).toEqual([]);
  expect(there.connections.has(client.id!)).toBe(false);
  await other.closeApp();
  client.emit("word", {});
  await here.saw("ada says word {}");
});

it("two surfaces on one server, each under a path of its own, keep their clients apart", async () => {
  await using host = await openSocketHost();
  const agent = serveNamed(host.realtime);
  const workflow = serveNamed(host.realtime, { surface: "workflow" });
  const mounted = { "/a": host.surface("agent"), "/w": host.surface("workflow") };
  const server = createServer((request, response) => {
    const surface = mounted[request.url!.slice(0, 2) as keyof typeof mounted];
    request.url = request.url!.slice(2);
    return toNodeHandler(surface)(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const attachments = Object.entries(mounted).map(([under, surface]) => attach(server, surface, { under }));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clients = ["/a", "/w"].map((under) => io(origin, { path: `${under}/live/`, auth: { name: under }, forceNew: true }));
  await Promise.all(clients.map(connected));
  await Promise.all([agent.saw("joined /a"), workflow.saw("joined /w")]);
  await expect.poll(() => clients.map((client) => client.io.engine.transport.name)).toEqual(["websocket", "websocket"]);
  expect(attachments.map(({ open }) => open.size)).toEqual([1, 1]);
  for (const client of clients) client.disconnect();
  await Promise.all([agent.saw("gone /a"), workflow.saw("gone /w")]);
  expect([agent.seen, workflow.seen]).toEqual([
    ["joined /a", "gone /a"],
    ["joined /w", "gone /w"],
  ]);
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  await closed;
});
