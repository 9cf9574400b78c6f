import { createLoopback, type Loopback, loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import {
  type App,
  type Channel,
  type ChannelHandlers,
  createApp,
  defineChannel,
  defineErrors,
  definePlugin,
  openChannel,
  ports,
} from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const errors = defineErrors({ unauthorized: { status: 401, message: "Wrong token" }, store_down: { status: 503 } });
const contract = defineChannel({
  surface: "agent",
  path: "/live/",
  summary: "Words both ways",
  hello: v.strictObject({ token: v.string() }),
  receives: {
    say: v.strictObject({ text: v.pipe(v.string(), v.maxLength(10)) }),
    "query:abort": v.strictObject({ sessionId: v.string() }),
  },
  sends: { heard: v.object({ text: v.string() }), "query:started": v.object({ sessionId: v.string() }) },
});
type Handlers = ChannelHandlers<typeof contract, string>;

describe("a channel", () => {
  it("admits a hello that fits its schema, and keeps its identity", async () => {
    await using service = await open();
    const client = await service.connect({ token: "ada" });
    client.emit("say", { text: "hi" });
    await settled();
    expect(service.seen).toEqual(["joined ada", "ada says hi"]);
  });

  it.each([
    ["does not fit", { token: 1 }, "invalid_hello"],
    ["has an undeclared field", { token: "ada", more: 1 }, "invalid_hello"],
    ["is missing", undefined, "invalid_hello"],
    ["is refused by the plugin", { token: "eve" }, "unauthorized"],
    ["makes the plugin fail", { token: "crash" }, "internal_error"],
    ["meets a service that is down", { token: "down" }, "internal_error"],
  ])("refuses a hello that %s, with a code for the client", async (_what, hello, code) => {
    await using service = await open();
    const refusal = await service.connect(hello).catch((error: unknown) => error as ports.ConnectionRefused);
    expect(refusal).toMatchObject({ name: "ConnectionRefused", code });
    expect((refusal as Error).message).not.toContain("hunter2");
    expect(service.seen).toEqual([]);
  });

  it("logs what failed while it admitted, and nothing of what a client did wrong", async () => {
    await using service = await open();
    for (const token of ["crash", "eve"]) await service.connect({ token }).catch(() => {});
    expect(service.telemetry.lines).toMatchObject([{ level: "error", cause: { name: "RangeError" } }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it.each([
    ["an event that is not declared", "shout", { text: "hi" }],
    ["an event named like a property of every object", "constructor", {}],
    ["a payload that does not fit", "say", { text: 1 }],
    ["a payload with an undeclared field", "say", { text: "hi", hunter2: 1 }],
    ["a payload that is too long", "say", { text: "hunter2".repeat(9) }],
    ["no payload", "say", undefined],
  ])("drops %s, logs it without its content, and goes on", async (_what, event, payload) => {
    await using service = await open();
    const client = await service.connect({ token: "ada" });
    client.emit(event, payload);
    client.emit("say", { text: "good" });
    await settled();
    expect(service.seen).toEqual(["joined ada", "ada says good"]);
    expect(service.telemetry.lines).toMatchObject([{ level: "warn", fields: { path: "/live/", socket: client.id } }]);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("hunter2");
  });

  it("says its declared events to one client", async () => {
    await using service = await open();
    const [ada, bob] = [await service.connect({ token: "ada" }), await service.connect({ token: "bob" })];
    const heard: unknown[] = [];
    for (const client of [ada, bob]) client.on("query:started", (payload) => heard.push([client.id, payload]));
    const { channel } = service;
    expect(channel.send(bob.id, channel.say["query:started"]({ sessionId: "s1" }))).toBe(true);
    expect(channel.send("nobody", channel.say.heard({ text: "" }))).toBe(false);
    expect([await channel.drained(bob.id), await channel.drained("nobody")]).toEqual([true, false]);
    expect(heard).toEqual([[bob.id, { sessionId: "s1" }]]);
  });

  it("survives handlers that fail, at once or later, and logs them", async () => {
    await using service = await open({
      receive: {
        say() {
          throw new RangeError("hunter2");
        },
        "query:abort": () => Promise.reject(new TypeError("hunter2")),
      },
      joined() {
        throw new SyntaxError("hunter2");
      },
      gone: () => Promise.reject(new URIError("hunter2")),
    });
    const client = await service.connect({ token: "ada" });
    client.emit("say", { text: "hi" });
    client.emit("query:abort", { sessionId: "s" });
    client.leave();
    await settled();
    expect(service.telemetry.lines.map(({ level, cause }) => [level, cause?.name])).toEqual([
      ["error", "SyntaxError"],
      ["error", "RangeError"],
      ["error", "TypeError"],
      ["error", "URIError"],
    ]);
  });

  it("reports that a client has left, and disconnects a client on request", async () => {
    await using service = await open();
    const client = await service.connect({ token: "ada" });
    expect([service.channel.has(client.id), service.channel.drop(client.id), service.channel.has(client.id)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(service.channel.drop(client.id)).toBe(false);
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
  });

  it("tells the plugin if a client leaves before it is admitted, and then does not admit it", async () => {
    const asked = Promise.withResolvers<AbortSignal>();
    await using service = await open({
      admit: (_hello, signal) => {
        asked.resolve(signal);
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
      },
    });
    const leaving = new AbortController();
    const connecting = service.connect({ token: "ada" }, { signal: leaving.signal });
    expect((await asked.promise).aborted).toBe(false);
    leaving.abort();
    await expect(connecting).rejects.toThrow();
    expect(service.seen).toEqual([]);
    expect(service.telemetry.lines).toEqual([]);
  });

  it("closes with its app, and gives its path free", async () => {
    const loopback = createLoopback();
    const service = await open({}, loopback);
    const client = await service.connect({ token: "ada" });
    await service[Symbol.asyncDispose]();
    expect(client.connected).toBe(false);
    expect(service.seen).toEqual(["joined ada", "gone ada"]);
    await expect(loopback.connect({ token: "ada" })).rejects.toMatchObject({ code: "not_served" });
    await (await open({}, loopback))[Symbol.asyncDispose]();
  });

  it("declared twice on one path stops the start with a sentence", async () => {
    const loopback = createLoopback();
    await using _first = await open({}, loopback);
    await expect(open({}, loopback)).rejects.toThrow('Realtime path /live/ of surface "agent" is served twice');
  });
});

/** Everything that was sent has arrived. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function open(more: Partial<Handlers> = {}, loopback: Loopback = createLoopback()) {
  const telemetry = createMemoryTelemetry();
  const seen: string[] = [];
  const opened: { channel?: Channel<typeof contract> } = {};
  const handlers: Handlers = {
    admit({ token }) {
      if (token === "eve") throw errors.unauthorized();
      if (token === "down") throw errors.store_down("hunter2");
      if (token === "crash") throw new RangeError("hunter2");
      return token;
    },
    joined: ({ who }) => void seen.push(`joined ${who}`),
    gone: ({ who }) => void seen.push(`gone ${who}`),
    receive: {
      say: ({ who }, { text }) => void seen.push(`${who} says ${text}`),
      "query:abort": ({ who }, { sessionId }) => void seen.push(`${who} aborts ${sessionId}`),
    },
    ...more,
  };
  const talk = definePlugin({
    name: "talk",
    config: v.strictObject({}),
    needs: { realtime: ports.realtime, telemetry: ports.telemetry },
    contract: {},
    setup(given, _config, scope) {
      opened.channel = openChannel(given, contract, handlers, scope);
      return {};
    },
  });
  const app: App = await createApp({
    name: "channel",
    adapters: [memoryTelemetry({ telemetry }), loopbackRealtime({ loopback })],
    plugins: [talk({})],
  });
  return {
    telemetry,
    seen,
    channel: opened.channel!,
    connect: loopback.connect,
    [Symbol.asyncDispose]: () => app.close(),
  };
}
