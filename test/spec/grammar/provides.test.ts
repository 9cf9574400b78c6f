import {
  type Adapter,
  createApp,
  defineAdapter,
  defineManyPort,
  definePlugin,
  definePort,
  later,
  type ManyPort,
  type Needs,
  optional,
  type Plugin,
  type Port,
  ports,
} from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const engine: Port<string> = definePort<string>("engine");
const tools: ManyPort<string> = defineManyPort<string>("tools");

describe("an area provides adapters", () => {
  it("that are made from its parsed options and opened before it is set up, after what they need", async () => {
    const seen: unknown[] = [];
    const area = definePlugin({
      name: "area",
      config: v.strictObject({ model: v.optional(v.string(), "small") }),
      needs: { engine },
      contract: {},
      provides: ({ model }) => [fixed("engine/own", engine, `engine of ${model}`)],
      setup({ engine: given }) {
        seen.push(given);
        return {};
      },
    });
    await using app = await createApp({ name: "x", plugins: [area({})] });
    expect([seen, app.port(engine)]).toEqual([["engine of small"], "engine of small"]);
  });

  it("that give way to the preset's own for the same single port, also one of what it extends", async () => {
    const own = { name: "own", adapters: [fixed("engine/other", engine, "other")] };
    await using app = await createApp({ ...own, plugins: [bringing("area", fixed("engine/own", engine, "own"))] });
    expect(app.port(engine)).toBe("other");
    await using child = await createApp({
      name: "child",
      extends: own,
      plugins: [bringing("area", fixed("engine/own", engine, "own"))],
    });
    expect(child.port(engine)).toBe("other");
  });

  it("in addition to the preset's own adapters of a many-port; adapters with the same name are replaced", async () => {
    const area = bringing("area", fixed("tools/a", tools, "brought a"), fixed("tools/b", tools, "brought b"));
    await using app = await createApp({
      name: "x",
      adapters: [fixed("tools/b", tools, "own b"), fixed("tools/c", tools, "own c")],
      plugins: [area],
    });
    expect(app.port(tools)).toEqual(["own b", "own c", "brought a"]);
  });

  it("that a preset which extends theirs can leave out by name, for good", async () => {
    const base = {
      name: "base",
      plugins: [bringing("area", fixed("tools/a", tools, "a"), fixed("tools/b", tools, "b"))],
    };
    const own = { name: "own", extends: base, without: ["tools/a"] };
    await using app = await createApp(own);
    await using below = await createApp({ name: "below", extends: own });
    expect([app.port(tools), below.port(tools)]).toEqual([["b"], ["b"]]);
    await expect(createApp({ name: "own", extends: base, without: ["tools/d"] })).rejects.toThrow(
      'Preset "own" leaves out "tools/d", which what it extends does not have; did you mean "tools/a"?',
    );
  });

  it("that go with their area where a preset leaves it out", async () => {
    const base = { name: "base", plugins: [bringing("area", fixed("tools/a", tools, "a"))] };
    await using app = await createApp({ name: "own", extends: base, without: ["area"] });
    expect(app.port(tools)).toEqual([]);
  });

  it("that two areas bring for one single port stop the start with a sentence", async () => {
    const plugins = [bringing("one", fixed("engine/a", engine, "a")), bringing("two", fixed("engine/b", engine, "b"))];
    await expect(createApp({ name: "x", plugins })).rejects.toThrow('Port "engine" is filled by two adapters');
  });

  it("and its bad options stop the start before any of them is made", async () => {
    const picky = definePlugin({
      name: "picky",
      config: v.strictObject({ limit: v.number() }),
      needs: {},
      contract: {},
      provides: ({ limit }) => [fixed("engine/own", engine, limit.toFixed(1))],
      setup: () => ({}),
    });
    await expect(createApp({ name: "x", plugins: [picky({} as never)] })).rejects.toThrow(
      'Plugin "picky" was given options that it does not take:\n  limit: expected a number, found nothing',
    );
  });
});

describe("a need that is bound later", () => {
  const left: Port<() => string> = definePort<() => string>("left");
  const right: Port<() => string> = definePort<() => string>("right");

  it("lets two adapters need each other, in any order", async () => {
    const one = adapter("left", left, { right: later(right) }, (given) => () => `left of ${given.right()().length}`);
    const two = adapter("right", right, { left: later(left) }, (given) => () => `right, ${typeof given.left()}`);
    for (const adapters of [
      [one, two],
      [two, one],
    ]) {
      await using app = await createApp({ name: "mutual", adapters });
      expect([app.port(left)(), app.port(right)()]).toEqual(["left of 15", "right, function"]);
    }
  });

  it("throws where it is asked before the other is open", async () => {
    const hasty = adapter("left", left, { right: later(right) }, ({ right: other }) => other());
    const calm = adapter("right", right, { left }, () => () => "right");
    await expect(createApp({ name: "x", adapters: [calm, hasty] })).rejects.toThrow(
      'Port "right" was asked for before its adapter was open',
    );
  });

  it("stops the start where nothing fills a single port, and is an empty list for a many-port", async () => {
    const lonely = adapter("left", left, { right: later(right) }, () => () => "left");
    await expect(createApp({ name: "x", adapters: [lonely] })).rejects.toThrow('port "right" (for adapter "left")');
    const free = adapter("left", left, { tools: later(tools) }, (given) => () => JSON.stringify(given.tools()));
    await using app = await createApp({ name: "x", adapters: [free] });
    expect(app.port(left)()).toBe("[]");
  });

  it("is for plugins, too, which may ask for what another area brings", async () => {
    const asked: string[] = [];
    const asker = definePlugin({
      name: "asker",
      config: v.strictObject({}),
      needs: { engine: later(engine) },
      contract: {},
      setup({ engine: ask }, _config, scope) {
        scope.onReady(() => asked.push(ask()));
        return {};
      },
    });
    await using _app = await createApp({
      name: "x",
      plugins: [asker({}), bringing("area", fixed("engine/own", engine, "own"))],
    });
    expect(asked).toEqual(["own"]);
  });
});

describe("an optional need", () => {
  const curious = adapter("left", engine, { name: optional(definePort<string>("name")) }, ({ name }) => String(name));

  it("is undefined where nothing fills the port, and opened before its asker otherwise", async () => {
    await using without = await createApp({ name: "x", adapters: [curious] });
    const named = fixed("name/ada", definePort<string>("name"), "Ada");
    await using app = await createApp({ name: "x", adapters: [curious, named] });
    expect([without.port(engine), app.port(engine)]).toEqual(["undefined", "Ada"]);
  });

  it("can be bound later, too", async () => {
    const name: Port<string> = definePort<string>("name");
    const asker = adapter("ask", definePort<() => unknown>("ask"), { name: later(optional(name)) }, (given) => given.name);
    const ask = (app: { port<T>(port: Port<T>): T }) => app.port(definePort<() => unknown>("ask"))();
    await using without = await createApp({ name: "x", adapters: [asker] });
    await using app = await createApp({ name: "x", adapters: [asker, fixed("name/ada", name, "Ada")] });
    expect([ask(without), ask(app)]).toEqual([undefined, "Ada"]);
  });
});

it("clock, ids and telemetry are there without an adapter", async () => {
  const asker = adapter("left", engine, { clock: ports.clock, ids: ports.ids, telemetry: ports.telemetry }, (given) => {
    given.telemetry.log.info("opened");
    return `${given.ids.id("x_").slice(0, 2)} ${given.clock.now() > 0}`;
  });
  await using app = await createApp({ name: "x", adapters: [asker] });
  expect(app.port(engine)).toBe("x_ true");
});

function bringing(name: string, ...adapters: readonly Adapter[]): Plugin {
  return definePlugin({
    name,
    config: v.strictObject({}),
    needs: {},
    contract: {},
    provides: () => adapters,
    setup: () => ({}),
  })({});
}

function fixed<T>(name: string, port: Port<T> | ManyPort<T>, value: T): Adapter {
  return defineAdapter({ name, port: port as Port<any>, needs: {}, open: () => value })();
}

function adapter<T>(name: string, port: Port<T>, needs: Needs, open: (given: any) => T): Adapter {
  return defineAdapter({ name, port: port as Port<any>, needs, open })();
}
