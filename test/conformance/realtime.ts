import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** A client of the adapter under test, over its real transport. */
export interface RealtimeClient {
  emit(event: string, payload: unknown): void;
  /** Listen to one event, or to `disconnect`. */
  on(event: string, listener: (payload: unknown) => void): void;
  /** The place of the last event that it has; of a client that has none, the place at which it began. */
  place(): string | undefined;
  leave(): void;
}

/** The adapter under test, and what it needs. */
export interface RealtimeUnderTest {
  readonly adapter: Adapter<typeof ports.realtime>;
  /**
   * Connect to a path of surface `agent`. Rejects with an error that carries `code` and `message` of the refusal. `last` is the `place` of
   * a client that comes back.
   */
  connect(opened: ports.Realtime, path: string, hello: unknown, last?: string): Promise<RealtimeClient>;
}

/** Options of `realtimeConformance`. */
export interface RealtimeConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
}

interface Service {
  readonly connections: ports.RealtimeConnections;
  /** What the service saw, in order: `joined ada`, `ada says word {"n":1}`, `gone ada`. */
  readonly seen: string[];
  /** Resolves when `seen` holds the entry. */
  saw(entry: string): Promise<void>;
  idOf(who: string): string;
}

/** The law of the realtime port, as vitest tests. `make` is called once per test. No test waits for a time: they wait for what they saw. */
export function realtimeConformance(
  name: string,
  make: () => RealtimeUnderTest | Promise<RealtimeUnderTest>,
  { others = [] }: RealtimeConformanceOptions = {},
): void {
  describeSuite(`realtime port: ${name}`, () => {
    let made: RealtimeUnderTest;
    let opened: OpenAdapter<ports.Realtime>;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, others);
    });
    afterEach(() => opened.close());

    const connect = (hello: unknown, path = "/live/", last?: string) => made.connect(opened.port, path, hello, last);
    const serve = (more: Partial<ports.RealtimeService<string>> = {}) => serveNamed(opened.port, more);

    it("admits a client by its credential, and reports its identity", async () => {
      const service = serve();
      await connect({ name: "ada" });
      await service.saw("joined ada");
      expect(service.connections.has(service.idOf("ada"))).toBe(true);
    });

    it("waits for a decision that takes its time", async () => {
      const decision = Promise.withResolvers<string>();
      const service = serve({ admit: () => decision.promise });
      const connecting = connect({});
      expect(service.seen).toEqual([]);
      decision.resolve("late");
      await connecting;
      await service.saw("joined late");
    });

    it("shows a refused client the code and the message, and does not let it join or send", async () => {
      const service = serve({ admit: () => Promise.reject(new ports.ConnectionRefused("unauthorized", "Wrong token")) });
      await expect(connect({ name: "eve" })).rejects.toMatchObject({ code: "unauthorized", message: "Wrong token" });
      expect(service.seen).toEqual([]);
    });

    it("shows nothing of any other error", async () => {
      serve({ admit: () => Promise.reject(new Error("database at 10.0.0.1 is down")) });
      const refusal = await connect({}).catch((error: unknown) => error as Error & { code?: string });
      expect(refusal).toMatchObject({ code: "internal_error" });
      expect(JSON.stringify({ ...(refusal as object) }) + (refusal as Error).message).not.toContain("10.0.0.1");
    });

    it("hands over each client's events in the order in which they were sent", async () => {
      const service = serve();
      const client = await connect({ name: "ada" });
      for (const n of [1, 2, 3]) client.emit("word", { n });
      await service.saw('ada says word {"n":3}');
      expect(service.seen).toEqual(["joined ada", 'ada says word {"n":1}', 'ada says word {"n":2}', 'ada says word {"n":3}']);
    });

    it("sends to one client, in order, and to no other", async () => {
      const service = serve();
      const [ada, bob] = [await connect({ name: "ada" }), await connect({ name: "bob" })];
      const heard: string[] = [];
      const done = Promise.withResolvers<void>();
      ada.on("news", () => heard.push("ada"));
      bob.on("news", (payload) => heard.push(JSON.stringify(payload)) === 2 && done.resolve());
      await service.saw("joined bob");
      expect(service.connections.send(service.idOf("bob"), "news", { n: 1 })).toBe(true);
      expect(service.connections.send(service.idOf("bob"), "news", { n: 2 })).toBe(true);
      await done.promise;
      expect(heard).toEqual(['{"n":1}', '{"n":2}']);
    });

    it("answers false for a connection that is not there", async () => {
      const service = serve();
      expect(service.connections.send("nobody", "news", {})).toBe(false);
      expect(service.connections.has("nobody")).toBe(false);
      expect(service.connections.drop("nobody")).toBe(false);
    });

    it("tells when all that was sent has left, also what is sent in pages", async () => {
      const service = serve();
      const client = await connect({ name: "ada" });
      await service.saw("joined ada");
      const id = service.idOf("ada");
      let heard = 0;
      const last = new Promise<void>((resolve) => client.on("page", () => ++heard === 3_000 && resolve()));
      for (let page = 0; page < 30; page++) {
        for (let n = 0; n < 100; n++) service.connections.send(id, "page", { page, n });
        expect(await service.connections.drained(id)).toBe(true);
      }
      await last;
      expect(service.connections.has(id)).toBe(true);
    });

    it("answers at once where nothing waits to leave", async () => {
      const service = serve();
      await connect({ name: "ada" });
      await service.saw("joined ada");
      const id = service.idOf("ada");
      expect(await Promise.all([service.connections.drained(id), service.connections.drained(id)])).toEqual([true, true]);
    });

    it("reports that nothing can be sent after the connection has ended", async () => {
      const service = serve();
      await connect({ name: "ada" });
      await service.saw("joined ada");
      const id = service.idOf("ada");
      service.connections.send(id, "page", { text: "x".repeat(100_000) });
      const drained = service.connections.drained(id);
      service.connections.drop(id);
      expect(await drained).toBe(false);
      expect(await service.connections.drained(id)).toBe(false);
    });

    it("tells once that a client is gone, and sends it nothing more", async () => {
      const service = serve();
      const client = await connect({ name: "ada" });
      await service.saw("joined ada");
      const id = service.idOf("ada");
      client.leave();
      await service.saw("gone ada");
      expect([service.connections.has(id), service.connections.send(id, "news", {}), service.connections.drop(id)]).toEqual([
        false,
        false,
        false,
      ]);
      expect(service.seen.filter((entry) => entry === "gone ada")).toHaveLength(1);
    });

    it("ends a connection that is dropped, and tells both sides", async () => {
      const service = serve();
      const client = await connect({ name: "ada" });
      await service.saw("joined ada");
      const cut = new Promise((resolve) => client.on("disconnect", resolve));
      expect(service.connections.drop(service.idOf("ada"))).toBe(true);
      await cut;
      await service.saw("gone ada");
    });

    it("hands over nothing of a client that is gone, also where it was sent before", async () => {
      const service = serve();
      const [client, other] = [await connect({ name: "ada" }), await connect({ name: "bob" })];
      await service.saw("joined bob");
      client.emit("word", {});
      service.connections.drop(service.idOf("ada"));
      await service.saw("gone ada");
      other.emit("word", {});
      await service.saw("bob says word {}");
      expect(service.seen.indexOf("ada says word {}")).toBeLessThan(service.seen.indexOf("gone ada"));
    });

    it("gives a client that comes back another id", async () => {
      const service = serve();
      const first = await connect({ name: "ada" });
      await service.saw("joined ada");
      const id = service.idOf("ada");
      first.leave();
      await service.saw("gone ada");
      service.seen.length = 0;
      await connect({ name: "ada" });
      await service.saw("joined ada");
      expect(service.idOf("ada")).not.toBe(id);
    });

    it("tells a client that comes back, and no other, where the service resumes", async () => {
      const asked: unknown[] = [];
      const joined: unknown[] = [];
      const hellos: unknown[] = [];
      const service = serve({
        admit: async (hello) => (hellos.push(hello), (hello as { name: string }).name),
        resume(who, last) {
          asked.push([who, last]);
          return { resumePoint: last ?? "the beginning", isWhole: last !== undefined };
        },
        joined: (socket, place) => void joined.push([socket.who, place, socket.id]),
      });
      const come = async (last?: string) => {
        const client = await connect({ name: "ada" }, "/live/", last);
        const [, , id] = joined.at(-1) as [string, string, string];
        return { client, id };
      };
      const first = await come();
      expect(first.client.place()).toBe("the beginning");
      const heard = new Promise((resolve) => first.client.on("news", resolve));
      service.connections.send(first.id, "news", { n: 1 }, "after one");
      service.connections.send(first.id, "weather", {});
      expect(await heard).toEqual({ n: 1 });
      expect(first.client.place()).toBe("after one");
      await come(first.client.place());
      await come("the beginning");
      expect(asked).toEqual([
        ["ada", undefined],
        ["ada", "after one"],
        ["ada", "the beginning"],
      ]);
      expect(joined.map((each) => (each as unknown[])[1])).toEqual(["the beginning", "after one", "the beginning"]);
      // The hello does not contain the fields that the transport adds.
      expect(hellos).toEqual(Array.from({ length: 3 }, () => ({ name: "ada" })));
    });

    it("keeps no place for a client that has none", async () => {
      const joined = Promise.withResolvers<unknown[]>();
      serve({ resume: () => undefined, joined: (...given) => joined.resolve(given) });
      const client = await connect({ name: "ada" });
      expect((await joined.promise)[1]).toBeUndefined();
      expect(client.place()).toBeUndefined();
    });

    it("keeps several paths apart", async () => {
      const [live, other] = [serve(), serve({ path: "/other/" })];
      const client = await connect({ name: "ada" }, "/other/");
      client.emit("word", {});
      await other.saw("ada says word {}");
      expect(live.seen).toEqual([]);
      expect(live.connections.has(other.idOf("ada"))).toBe(false);
    });

    it("refuses to serve one path twice, with a sentence", () => {
      serve();
      expect(() => serve()).toThrow('Realtime path /live/ of surface "agent" is served twice');
    });

    it("serves the same path of two surfaces", async () => {
      serve({ surface: "workflow" });
      const service = serve();
      await connect({ name: "ada" });
      await service.saw("joined ada");
    });

    it("ends every connection when it closes, admits no client, and frees the path", async () => {
      const service = serve();
      const client = await connect({ name: "ada" });
      await service.saw("joined ada");
      const cut = new Promise((resolve) => client.on("disconnect", resolve));
      await Promise.all([service.connections.close(), service.connections.close()]);
      await cut;
      expect(service.seen).toEqual(["joined ada", "gone ada"]);
      await expect(connect({ name: "bob" })).rejects.toThrow();
      const again = serve();
      await connect({ name: "bob" });
      await again.saw("joined bob");
    });
  });
}

/** A service that admits everybody under the name it presents, and writes down what it sees. */
function serveNamed(realtime: ports.Realtime, more: Partial<ports.RealtimeService<string>>): Service {
  const seen: string[] = [];
  const ids = new Map<string, string>();
  const waiting: Array<{ readonly entry: string; readonly resolve: () => void }> = [];
  const see = (entry: string) => {
    seen.push(entry);
    for (const each of waiting) if (each.entry === entry) each.resolve();
  };
  const connections = realtime.serve<string>({
    surface: "agent",
    path: "/live/",
    admit: async (hello) => (hello as { name: string }).name,
    joined(socket) {
      ids.set(socket.who, socket.id);
      see(`joined ${socket.who}`);
    },
    receive: (socket, event, payload) => see(`${socket.who} says ${event} ${JSON.stringify(payload)}`),
    gone: (socket) => see(`gone ${socket.who}`),
    ...more,
  });
  return {
    connections,
    seen,
    saw: (entry) => (seen.includes(entry) ? Promise.resolve() : new Promise((resolve) => void waiting.push({ entry, resolve }))),
    idOf: (who) => ids.get(who) ?? "",
  };
}
