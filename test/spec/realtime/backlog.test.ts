import { afterEach, describe, expect, it } from "vitest";
import { type NamedService, serveNamed } from "../../harness/named-service.ts";
import { openDeafSocket, openRawSession } from "../../harness/raw-session.ts";
import { clientKinds, openSocketHost, type SocketHost, told } from "../../harness/socket-host.ts";

let host: SocketHost;
afterEach(() => host[Symbol.asyncDispose]());

async function open(options?: Parameters<typeof openSocketHost>[0]): Promise<NamedService> {
  host = await openSocketHost(options);
  return serveNamed(host.realtime);
}

describe("a client that reads slower than the service sends", () => {
  it("over a WebSocket is cut when more than 1 MiB waits, and its memory is given back at once", async () => {
    const service = await open();
    const deaf = await openDeafSocket(host.origin, { name: "ada" });
    await service.saw("joined ada");
    const [wire] = host.attachment.open;
    const text = "x".repeat(64 * 1024);
    // What the system buffers is not counted, and differs from system to system.
    while (service.connections.send(service.idOf("ada"), "page", text)) await new Promise(setImmediate);
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    expect(wire!.destroyed).toBe(true);
    deaf.destroy();
  });

  it("over polling is cut when more than 1 MiB waits", async () => {
    const service = await open();
    await openRawSession(host.origin, { name: "ada" });
    const text = "x".repeat(64 * 1024);
    let sent = 0;
    while (service.connections.send(service.idOf("ada"), "page", text)) sent++;
    expect(sent).toBe(15);
  });

  it("over polling is cut when more than 1,000 events wait", async () => {
    const service = await open();
    await openRawSession(host.origin, { name: "ada" });
    const id = service.idOf("ada");
    for (let n = 0; n < 1_000; n++) expect(service.connections.send(id, "count", n)).toBe(true);
    expect(service.connections.send(id, "count", 1_000)).toBe(false);
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    expect(host.telemetry.lines).toMatchObject([{ level: "warn", fields: { path: "/live/", socket: id } }]);
  });

  it.each(Object.entries(clientKinds))("gets no goodbye, so that it comes back by itself: %s", async (_kind, transports) => {
    const service = await open({ backlog: { events: 10, bytes: 1_000_000 } });
    const client = await host.connect({ name: "ada" }, { transports: [...transports], reconnection: true, reconnectionDelay: 1 });
    const id = service.idOf("ada");
    const [cut, back] = [told(client, "disconnect"), told(client, "connect")];
    while (service.connections.send(id, "count", 1));
    expect(["transport close", "transport error"]).toContain(await cut);
    await back;
    await service.saw("joined ada", 2);
  });

  it("does not hold up others", async () => {
    const service = await open();
    const deaf = await openDeafSocket(host.origin, { name: "ada" });
    const client = await host.connect({ name: "bob" });
    await service.saw("joined bob");
    const heard = new Promise<void>((resolve) => client.on("count", (n: number) => n === 99 && resolve()));
    const text = "x".repeat(16 * 1024);
    for (let n = 0; n < 100; n++) {
      service.connections.send(service.idOf("ada"), "page", text);
      service.connections.send(service.idOf("bob"), "count", n);
      await new Promise(setImmediate);
    }
    await heard;
    deaf.destroy();
  });
});

describe.each(Object.entries(clientKinds))("a replay of more than the backlog, %s", (_kind, transports) => {
  it("in one turn cuts even a fast client", async () => {
    const service = await open();
    const client = await host.connect({ name: "ada" }, { transports: [...transports] });
    const cut = told(client, "disconnect");
    for (let n = 0; n < 5_000; n++) service.connections.send(service.idOf("ada"), "count", n);
    await cut;
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
  });

  it("in pages that wait for each other arrives whole and in order", async () => {
    const service = await open({ backlog: { events: 100, bytes: 2_000 } });
    const client = await host.connect({ name: "ada" }, { transports: [...transports] });
    const id = service.idOf("ada");
    const heard: number[] = [];
    const all = new Promise<void>((resolve) => client.on("count", (n: number) => heard.push(n) === 2_000 && resolve()));
    for (let n = 0; n < 2_000; n++) {
      service.connections.send(id, "count", n);
      if (n % 100 === 99) expect(await service.connections.drained(id)).toBe(true);
    }
    await all;
    expect(heard).toEqual(Array.from({ length: 2_000 }, (_each, n) => n));
  });
});

describe("what was sent", () => {
  it("is drained for all that wait at the same time, but not for one whose events came later", async () => {
    const service = await open();
    const { poll } = await openRawSession(host.origin, { name: "ada" });
    const id = service.idOf("ada");
    const order: string[] = [];
    const note = (what: string) => async (left: boolean) => void order.push(`${what} ${left}`);
    service.connections.send(id, "count", 1);
    const first = [1, 2].map((n) => service.connections.drained(id).then(note(`first ${n}`)));
    // The first poll takes the first event; the second says that it arrived, and takes what came meanwhile.
    expect(await (await poll()).text()).toBe('42["count",1]');
    service.connections.send(id, "count", 2);
    const second = service.connections.drained(id).then(note("second"));
    expect(order).toEqual([]);
    expect(await (await poll()).text()).toBe('42["count",2]');
    await Promise.all(first);
    expect(order).toEqual(["first 1 true", "first 2 true"]);
    const last = poll();
    await second;
    service.connections.send(id, "count", 3);
    expect(await (await last).text()).toBe('42["count",3]');
  });

  it("never has left where the client is cut first", async () => {
    const service = await open({ backlog: { events: 1, bytes: 1_000 } });
    await openRawSession(host.origin, { name: "ada" });
    const id = service.idOf("ada");
    service.connections.send(id, "count", 1);
    const drained = service.connections.drained(id);
    service.connections.send(id, "count", 2);
    expect(await drained).toBe(false);
  });
});
