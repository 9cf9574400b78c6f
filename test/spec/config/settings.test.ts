import { fromEnv, listConfigKeys, loadConfig, nearestWord, secret } from "@portico/core";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

const schema = v.strictObject({
  port: v.optional(fromEnv("PORT", v.pipe(v.number(), v.integer(), v.maxValue(9), v.description("Where it listens."))), 3),
  servers: v.optional(
    v.array(v.strictObject({ id: v.string(), key: v.optional(secret()), weight: v.optional(v.number(), 1) })),
    [],
  ),
  env: v.optional(v.record(v.string(), secret()), {}),
  tags: v.optional(v.array(v.string()), []),
  mode: v.picklist(["a", "b"]),
});

describe("a listing of the effective settings", () => {
  it("has every key with value, source and variable; items of lists have their own lines; secrets are masked", () => {
    const content = {
      mode: "a",
      tags: ["x"],
      servers: [
        { id: "one", key: { env: "ONE" } },
        { id: "two", key: "sk" },
      ],
      env: { TOKEN: "sk" },
    };
    const file = { path: "/etc/app.json", content };

    const { settings } = loadConfig(schema, { file, env: { PORT: "5", ONE: "sk" } });

    const lines = settings.map(({ path, value, source, env, reference }) => [path, value, source, env, reference]);
    const from = "file /etc/app.json";
    expect(lines).toEqual([
      ["port", 5, "environment PORT", "PORT", undefined],
      ["servers.0.id", "one", from, undefined, undefined],
      ["servers.0.key", "***", from, undefined, "environment ONE"],
      ["servers.0.weight", 1, "default", undefined, undefined],
      ["servers.1.id", "two", from, undefined, undefined],
      ["servers.1.key", "***", from, undefined, undefined],
      ["servers.1.weight", 1, "default", undefined, undefined],
      ["env.TOKEN", "***", from, undefined, undefined],
      ["tags", ["x"], from, undefined, undefined],
      ["mode", "a", from, undefined, undefined],
    ]);
    expect(JSON.stringify(settings)).not.toContain("sk");
  });
});

describe("a listing of a schema's keys, for documents", () => {
  it("has each key with what is expected, its default, its variable and its description", () => {
    const keys = listConfigKeys(schema);

    expect(keys.map(({ path }) => path)).toEqual([
      "port",
      "servers",
      "servers.*.id",
      "servers.*.key",
      "servers.*.weight",
      "env",
      "env.*",
      "tags",
      "mode",
    ]);
    expect(keys[0]).toEqual({
      path: "port",
      expected: "a whole number of at most 9",
      default: 3,
      env: "PORT",
      isSecret: false,
      isRequired: false,
      description: "Where it listens.",
    });
    expect(keys.find(({ path }) => path === "mode")).toMatchObject({ expected: '"a" or "b"', isRequired: true });
    expect(keys.find(({ path }) => path === "servers.*.key")).toMatchObject({ isSecret: true });
  });

  it("ends for a schema that contains itself", () => {
    interface Tree {
      readonly children?: readonly Tree[] | undefined;
    }
    const tree: v.GenericSchema<Tree> = v.strictObject({ children: v.optional(v.array(v.lazy(() => tree))) });

    expect(listConfigKeys(tree).length).toBeGreaterThan(0);
    expect(loadConfig(tree, { file: { path: "/t.json", content: { children: [{ children: [] }] } } }).value).toEqual({
      children: [{ children: [] }],
    });
  });
});

describe("the nearest word", () => {
  it.each([
    ["proxi", "proxy"],
    ["PROXY", "proxy"],
    ["agnet", "agent"],
    ["datadir", "dataDir"],
  ])("%s was meant as %s", (written, meant) => {
    expect(nearestWord(written, ["proxy", "agent", "dataDir"])).toBe(meant);
  });

  it.each([
    ["PORTICO_PROXY_PROT", "PORTICO_PROXY_PORT"],
    ["PORTICO_DATADIR", "PORTICO_DATA_DIR"],
    ["PORTICO_AGENT_TOKEN", "PORTICO_AGENT_TOKENS"],
    ["PORTICO_TOKEN", undefined],
    ["PORTICO_AGENT_MODE", undefined],
    ["PORTICO_PROXY", undefined],
    ["PORTICO_WORKFLOW_TOKEN", undefined],
  ])("of names with parts is judged by the parts that differ: %s was meant as %s", (written, meant) => {
    const known = ["MODE", "PROXY_PORT", "PROXY_HOST", "AGENT_PORT", "AGENT_HOST", "AGENT_TOKENS", "DATA_DIR", "WORKFLOW_HOST"];
    expect(
      nearestWord(
        written,
        known.map((name) => `PORTICO_${name}`),
      ),
    ).toBe(meant);
  });

  it("is undefined if all words differ too much", () => {
    expect(nearestWord("zebra", ["proxy", "agent"])).toBeUndefined();
    expect(nearestWord("x".repeat(100_000), ["proxy"])).toBeUndefined();
  });
});

it("a list in place of an object is refused, also of an object without required keys", () => {
  const groups = v.strictObject({
    group: v.optional(v.strictObject({ a: v.optional(v.number()) }), {}),
    free: v.optional(v.record(v.string(), v.string()), {}),
    servers: v.optional(v.array(v.strictObject({ id: v.string() })), []),
  });
  const problemsOf = (content: unknown) => {
    try {
      return loadConfig(groups, { file: { path: "/etc/app.json", content } }).value;
    } catch (error) {
      return (error as Error).message.split("\n");
    }
  };
  expect(problemsOf({ group: [], free: ["a"], servers: [[]] })).toEqual([
    "group: expected an object, found a list (file /etc/app.json)",
    "free: expected an object, found a list (file /etc/app.json)",
    "servers.0: expected an object, found a list (file /etc/app.json)",
  ]);
  expect(problemsOf({ group: {}, free: {}, servers: [] })).toEqual({ group: {}, free: {}, servers: [] });
});
