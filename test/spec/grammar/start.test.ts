import { memoryRecords } from "@portico/adapters/records/memory";
import { redis } from "@portico/cluster/redis/server";
import {
  type Adapter,
  createApp,
  defineAdapter,
  defineContract,
  defineManyPort,
  definePlugin,
  definePort,
  definePreset,
  later,
  type ManyPort,
  type Needs,
  type Plugin,
  type Port,
  ports,
  reply,
} from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const house: Port<string> = definePort<string>("house");
const garden: Port<string> = definePort<string>("garden");
const guests: ManyPort<string> = defineManyPort<string>("guests");

describe("adapters", () => {
  it("open after the adapters they need, in any listed order, and close in reverse", async () => {
    const log: string[] = [];
    const app = await createApp({ name: "ok", adapters: [loud(log, garden, "garden", { house }), loud(log, house, "house")] });
    expect(log.splice(0)).toEqual(["open house", "open garden"]);
    await app.close();
    expect(log).toEqual(["close garden", "close house"]);
  });

  it("get their needs: one adapter of a single port, all adapters of a many-port in order, an empty list without adapters", async () => {
    const seen: unknown[] = [];
    const curious = defineAdapter({
      name: "curious",
      port: house,
      needs: { garden, guests },
      open(given) {
        seen.push(given);
        return "house";
      },
    });
    const filled = [fixed(guests, "ada"), fixed(garden, "roses"), fixed(guests, "bob")];
    await (await createApp({ name: "full", adapters: [curious(), ...filled] })).close();
    await (await createApp({ name: "empty", adapters: [curious(), fixed(garden, "weeds")] })).close();
    expect(seen).toEqual([
      { garden: "roses", guests: ["ada", "bob"] },
      { garden: "weeds", guests: [] },
    ]);
  });

  it("whose needed port has no adapter stop the start with a clear message", async () => {
    await expect(createApp({ name: "x", adapters: [loud([], garden, "garden", { house })] })).rejects.toThrow(
      'Preset "x" has no adapter for a port that parts of it need:\n  port "house" (for adapter "garden")',
    );
  });

  it("that need each other in a circle stop the start with the circle", async () => {
    const circle = [loud([], house, "a", { garden }), loud([], garden, "b", { house })];
    await expect(createApp({ name: "x", adapters: circle })).rejects.toThrow("Adapters need each other in a circle: a -> b -> a");
  });

  it("that fill one port twice stop the start with a sentence", async () => {
    const log: string[] = [];
    await expect(createApp({ name: "x", adapters: [loud(log, house, "a"), loud(log, house, "b")] })).rejects.toThrow(
      'Port "house" is filled by two adapters; a preset gives it one',
    );
    expect(log.slice(-2)).toEqual(["close b", "close a"]);
  });
});

describe("a failed start", () => {
  it("throws what failed, after it has undone what was opened, last in first out", async () => {
    const log: string[] = [];
    const broken = defineAdapter({
      name: "broken",
      port: guests,
      needs: {},
      open() {
        throw new Error("no key");
      },
    });
    await expect(
      createApp({ name: "bad", adapters: [loud(log, house, "house"), loud(log, garden, "garden"), broken()] }),
    ).rejects.toThrow("no key");
    expect(log).toEqual(["open house", "open garden", "close garden", "close house"]);
  });

  it("of a plugin undoes what its setup had opened", async () => {
    const log: string[] = [];
    const failing = plugin("failing", {}, (scope) => {
      scope.onClose(() => log.push("undo setup"));
      throw new Error("no table");
    });
    await expect(createApp({ name: "bad", adapters: [loud(log, house, "house")], plugins: [failing] })).rejects.toThrow(
      "no table",
    );
    expect(log).toEqual(["open house", "undo setup", "close house"]);
  });

  it("reports the original error, not errors of the cleanup", async () => {
    const stuck = defineAdapter({
      name: "stuck",
      port: house,
      needs: {},
      open(_given, _options, scope) {
        scope.onClose(() => {
          throw new Error("stuck");
        });
        return "house";
      },
    });
    const broken = defineAdapter({
      name: "broken",
      port: garden,
      needs: { house },
      open() {
        throw new Error("no key");
      },
    });
    await expect(createApp({ name: "bad", adapters: [stuck(), broken()] })).rejects.toThrow("no key");
  });
});

describe("closing", () => {
  it("closes everything even when one undo fails, and says all failures at once", async () => {
    const log: string[] = [];
    const leaky = (n: number) =>
      defineAdapter({
        name: `g${n}`,
        port: guests,
        needs: {},
        open(_given, _options, scope) {
          scope.onClose(() => {
            log.push(`g${n}`);
            if (n !== 2) throw new Error(`stuck ${n}`);
          });
          return `g${n}`;
        },
      })();
    const app = await createApp({ name: "leaky", adapters: [leaky(1), leaky(2), leaky(3)] });
    const failure = await app.close().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(AggregateError);
    expect(failure).toMatchObject({
      message: 'App "leaky" did not close cleanly',
      errors: [{ message: "stuck 3" }, { message: "stuck 1" }],
    });
    expect(log).toEqual(["g3", "g2", "g1"]);
  });

  it("twice is once", async () => {
    const log: string[] = [];
    const app = await createApp({ name: "ok", adapters: [loud(log, house, "house")] });
    await Promise.all([app.close(), app.close()]);
    await app[Symbol.asyncDispose]();
    expect(log).toEqual(["open house", "close house"]);
  });

  it("waits for an undo that takes its time before it begins the next", async () => {
    const log: string[] = [];
    const gate = Promise.withResolvers<void>();
    const slow = defineAdapter({
      name: "slow",
      port: garden,
      needs: { house },
      open(_given, _options, scope) {
        scope.onClose(async () => {
          await gate.promise;
          log.push("close slow");
        });
        return "slow";
      },
    });
    const app = await createApp({ name: "ok", adapters: [slow(), loud(log, house, "house")] });
    const closing = app.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(["open house"]);
    gate.resolve();
    await closing;
    expect(log).toEqual(["open house", "close slow", "close house"]);
  });
});

describe("missing adapters", () => {
  it("are all named in one error, each with an adapter to write down, before anything is opened", async () => {
    const log: string[] = [];
    const adapters = [loud(log, house, "house"), loud(log, garden, "garden", { records: ports.records, own: definePort("own") })];
    const plugins = [plugin("thirsty", { records: ports.records, engine: later(ports.engine), log: ports.log })];
    const failure = (await createApp({ name: "shop", adapters, plugins }).catch((error: unknown) => error)) as Error;
    expect(failure.message).toBe(
      [
        'Preset "shop" has no adapter for 4 ports that parts of it need:',
        '  port "records" (for adapter "garden", plugin "thirsty"): add sqliteRecords({ path }) from @portico/adapters/records/sqlite',
        '  port "own" (for adapter "garden")',
        '  port "engine" (for plugin "thirsty"): add embeddedEngine({}) from @portico/adapters/engine/embedded',
        '  port "log" (for plugin "thirsty"): add sqliteLog({}) from @portico/adapters/log/sqlite',
      ].join("\n"),
    );
    expect(log).toEqual([]);
  });

  it("have an adapter that exists, for each port of the packages that presets fill", async () => {
    const builtIn = ["areas", "clock", "ids", "node-paths", "readiness", "telemetry", "websocket-paths"];
    const all = [...Object.values<unknown>(ports), redis].filter(isSinglePort).filter(({ id }) => !builtIn.includes(id));
    const needs = Object.fromEntries(all.map((port) => [port.id, port]));
    const failure = (await createApp({ name: "x", plugins: [plugin("all", needs)] }).catch((error: unknown) => error)) as Error;
    const [, ...lines] = failure.message.split("\n");
    expect(lines).toHaveLength(all.length);
    for (const line of lines) {
      const [, name = "", module = ""] = /: add (?:\.\.\.)?(\w+)\(\{.*\}\)(?: in plugins)? from (\S+)$/.exec(line) ?? [];
      expect(await import(/* @vite-ignore */ module), line).toHaveProperty(name, expect.any(Function));
    }
  });
});

describe("parts of a preset", () => {
  const called = plugin("called", {});
  it.each<[string, unknown, string]>([
    ["an adapter that was not called", { adapters: [memoryRecords] }, 'adapters[0]: "records/memory" was not called'],
    ["a list that was not spread", { adapters: [[memoryRecords()]] }, "adapters[0] is a list. Spread it"],
    ["a missing adapter", { adapters: [memoryRecords(), undefined] }, "adapters[1] is nothing, not an adapter"],
    ["a plugin among the adapters", { adapters: [called] }, "adapters[0] is a plugin: list it in plugins"],
    ["an adapter among the plugins", { plugins: [memoryRecords()] }, "plugins[0] is an adapter: list it in adapters"],
    ["a plugin that was not called", { plugins: [definePlugin(called.spec)] }, 'plugins[0]: "called" was not called'],
    ["an object of another kind", { plugins: [{ name: "called" }] }, "plugins[0] is an object, not a plugin"],
    ["a parent that was not called", { extends: definePreset(() => ({ name: "y" })) }, "extends a preset that was not called"],
  ])("stop the start with a sentence: %s", async (_what, parts, sentence) => {
    await expect(createApp({ name: "x", ...(parts as object) })).rejects.toThrow(sentence);
    await expect(createApp({ name: "child", extends: { name: "x", ...(parts as object) } })).rejects.toThrow(sentence);
  });

  it("stop the start with a sentence: a preset that was not called", async () => {
    await expect(createApp(definePreset(() => ({ name: "y" })) as never)).rejects.toThrow("A preset was not called");
  });
});

describe("plugins", () => {
  it("whose needed port has no adapter stop the start with a clear message", async () => {
    const thirsty = plugin("thirsty", { records: ports.records });
    await expect(createApp({ name: "x", plugins: [thirsty] })).rejects.toThrow(
      'port "records" (for plugin "thirsty"): add sqliteRecords({ path }) from @portico/adapters/records/sqlite',
    );
    await (await createApp({ name: "x", adapters: [memoryRecords()], plugins: [thirsty] })).close();
  });

  it("whose contract names an auth scheme without a guard stop the start with a clear message", async () => {
    const unguarded = route("unguarded", { auth: "owner-token", path: "/peek" });
    await expect(createApp({ name: "x", plugins: [unguarded] })).rejects.toThrow(
      'Plugin "unguarded" has no guard "owner-token", which "only" of its contract asks for',
    );
  });

  it("that declare one method and path twice on one surface stop the start with both names", async () => {
    const both = [route("first", { path: "/same" }), route("second", { path: "/same" })];
    await expect(createApp({ name: "x", plugins: both })).rejects.toThrow(
      'GET /same on surface "agent" is declared twice: by "first.only" and "second.only"',
    );
    const apart = [route("first", { path: "/same" }), route("second", { path: "/same", surface: "workflow" })];
    await (await createApp({ name: "x", plugins: apart })).close();
  });

  it("of one name stop the start with a sentence", async () => {
    const both = [route("same", { path: "/a" }), route("same", { path: "/b" })];
    await expect(createApp({ name: "twins", plugins: both })).rejects.toThrow('Plugin "same" is listed twice in preset "twins"');
  });

  it("with options that they do not take stop the start with every bad key, and no value", async () => {
    const picky = definePlugin({
      name: "picky",
      config: v.strictObject({ limit: v.number(), name: v.optional(v.string()) }),
      needs: {},
      contract: {},
      setup: () => ({}),
    });
    const failure = await createApp({ name: "x", plugins: [picky({ limit: "hunter2", nmae: 1 } as never)] }).catch(
      (error: Error) => error,
    );
    expect((failure as Error).message).toBe(
      'Plugin "picky" was given options that it does not take:\n  limit: expected a number, found a string\n  nmae: expected no such option, found a number; did you mean "name"?',
    );
  });

  it("are set up after every adapter is open, with what they need, their options parsed", async () => {
    const seen: unknown[] = [];
    const curious = definePlugin({
      name: "curious",
      config: v.strictObject({ greeting: v.optional(v.string(), "Hello") }),
      needs: { house, guests },
      contract: {},
      setup(given, config) {
        seen.push(given, config);
        return {};
      },
    });
    await (
      await createApp({ name: "x", plugins: [curious({})], adapters: [fixed(house, "home"), fixed(guests, "ada")] })
    ).close();
    expect(seen).toEqual([{ house: "home", guests: ["ada"] }, { greeting: "Hello" }]);
  });
});

describe("presets", () => {
  const base = definePreset((options: { readonly home: string }) => ({
    name: "base",
    adapters: [fixed(house, options.home), fixed(guests, "ada")],
    plugins: [route("hello", { path: "/hello", text: "Hello" })],
  }));

  it("that extend another replace its adapter of a single port and its plugin of the same name, and add to its many-ports", async () => {
    await using app = await createApp({
      name: "own",
      extends: base({ home: "tent" }),
      adapters: [fixed(house, "castle"), fixed(guests, "bob")],
      plugins: [route("hello", { path: "/hello", text: "Ahoy" })],
    });
    expect([app.name, app.port(house), app.port(guests)]).toEqual(["own", "castle", ["ada", "bob"]]);
    expect(await (await app.fetch(new Request("http://test/hello"))).json()).toBe("Ahoy");
  });

  it("leave out plugins and adapters of what they extend by name: their paths are unknown, their ports empty", async () => {
    const own = { name: "own", extends: base({ home: "tent" }), plugins: [route("other", { path: "/other", text: "Hi" })] };
    await using app = await createApp({ ...own, without: ["hello", "fixed ada"] });
    expect([app.has(house), app.port(guests)]).toEqual([true, []]);
    expect((await app.fetch(new Request("http://test/hello"))).status).toBe(404);
    expect(await (await app.fetch(new Request("http://test/other"))).json()).toBe("Hi");
  });

  it.each([
    ["helo", 'Preset "own" leaves out "helo", which what it extends does not have; did you mean "hello"?'],
    ["own-plugin", 'Preset "own" leaves out "own-plugin", which what it extends does not have'],
  ])("cannot leave out what they do not extend: %s", async (name, sentence) => {
    const plugins = [route("own-plugin", { path: "/own", text: "Hi" })];
    await expect(createApp({ name: "own", extends: base({ home: "tent" }), plugins, without: [name] })).rejects.toThrow(
      new Error(sentence),
    );
  });

  it("keep what they do not replace", async () => {
    await using app = await createApp({ name: "own", extends: base({ home: "tent" }) });
    expect(app.port(house)).toBe("tent");
    expect(await (await app.fetch(new Request("http://test/hello"))).json()).toBe("Hello");
  });
});

describe("what plugins gave onReady", () => {
  const waiting = (log: string[], name: string, run: () => unknown): Plugin =>
    definePlugin({
      name,
      config: v.strictObject({}),
      needs: {},
      contract: {},
      setup(_given, _config, scope) {
        log.push(`set up ${name}`);
        scope.onClose(() => log.push(`close ${name}`));
        scope.onReady(run);
        return {};
      },
    })({});

  it("runs in order when every plugin is set up, and the app has started when it has ended", async () => {
    const log: string[] = [];
    const later = async () => {
      await new Promise(setImmediate);
      log.push("ready a");
    };
    const plugins = [waiting(log, "a", later), waiting(log, "b", () => log.push("ready b"))];
    await (await createApp({ name: "ok", plugins })).close();
    expect(log).toEqual(["set up a", "set up b", "ready a", "ready b", "close b", "close a"]);
  });

  it("stops the start with what it throws, and everything is undone", async () => {
    const log: string[] = [];
    const fail = () => {
      throw new Error("not today");
    };
    await expect(createApp({ name: "x", plugins: [waiting(log, "a", fail)] })).rejects.toThrow("not today");
    expect(log).toEqual(["set up a", "close a"]);
  });
});

describe("an app", () => {
  it("is picked by surface where it has several, and says which there are", async () => {
    await using app = await createApp({
      name: "two",
      plugins: [route("a", { path: "/a" }), route("b", { path: "/b", surface: "workflow" })],
    });
    expect(app.surfaces).toEqual(["agent", "workflow"]);
    expect(() => app.fetch(new Request("http://test/a"))).toThrow(
      'App "two" has the surfaces agent, workflow: pick one with app.surface(name)',
    );
    expect(() => app.surface("proxy")).toThrow('App "two" has no surface "proxy"; it has agent, workflow');
    expect((await app.surface("agent").fetch(new Request("http://test/a"))).status).toBe(200);
    expect((await app.surface("workflow").fetch(new Request("http://test/a"))).status).toBe(404);
  });

  it("without a surface says so", async () => {
    await using app = await createApp({ name: "bare" });
    expect(() => app.fetch(new Request("http://test/"))).toThrow("(none)");
    expect(() => app.port(house)).toThrow('App "bare" has no adapter for the port "house"');
  });

  it("does not see another app in the same process", async () => {
    const counting = () => {
      let count = 0;
      return definePlugin({
        name: "counter",
        config: v.strictObject({}),
        needs: { records: ports.records },
        contract: defineContract(
          { surface: "agent", auth: "open", envelope: (error) => error.code },
          { count: { method: "GET", path: "/count", summary: "", success: reply.json(v.array(v.number())) } },
        ),
        setup: ({ records }) => {
          const visits = records.collection<{ n: number }>({ name: "visits" });
          return {
            async count() {
              await visits.put(String(++count), { n: count });
              return (await visits.query()).items.map(({ value }) => value.n);
            },
          };
        },
      })({});
    };
    await using one = await createApp({ name: "one", adapters: [memoryRecords()], plugins: [counting()] });
    await using two = await createApp({ name: "two", adapters: [memoryRecords()], plugins: [counting()] });
    const visit = async (app: typeof one) => (await app.fetch(new Request("http://test/count"))).json();
    expect([await visit(one), await visit(one), await visit(two)]).toEqual([[1], [1, 2], [1]]);
    expect(one.port(ports.records)).not.toBe(two.port(ports.records));
  });
});

/** Fills a port with a text, and says in `log` when it opens and closes. */
function loud(log: string[], port: Port<string>, name: string, needs: Needs = {}): Adapter {
  return defineAdapter({
    name,
    port,
    needs,
    open(_given, _options, scope) {
      log.push(`open ${name}`);
      scope.onClose(() => log.push(`close ${name}`));
      return name;
    },
  })();
}

function fixed<P extends Port<any>>(port: P, value: string): Adapter {
  return defineAdapter({ name: `fixed ${value}`, port: port as Port<string>, needs: {}, open: () => value })();
}

function plugin(name: string, needs: Needs, setup: (scope: { onClose(undo: () => unknown): void }) => void = () => {}): Plugin {
  return definePlugin({
    name,
    config: v.strictObject({}),
    needs,
    contract: {},
    setup(_given, _config, scope) {
      setup(scope);
      return {};
    },
  })({});
}

/** A plugin with one route that answers a text. */
function route(
  name: string,
  { path, auth = "open", surface = "agent", text = name }: { path: `/${string}`; auth?: string; surface?: string; text?: string },
): Plugin {
  return definePlugin({
    name,
    config: v.strictObject({}),
    needs: {},
    contract: defineContract(
      { surface, auth, envelope: (error) => ({ error: error.code }) },
      { only: { method: "GET", path, summary: "", success: reply.json(v.string()) } },
    ),
    setup: () => ({ only: () => text }),
  })({});
}

function isSinglePort(value: unknown): value is Port<unknown> {
  return typeof value === "object" && value !== null && "many" in value && value.many === false;
}
