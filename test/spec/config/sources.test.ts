import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigUnusable, filePath, fromEnv, loadConfig, Secret, secret, secretFromEnv } from "@portico/core";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** As a third party's plugin might declare it. */
const schema = v.strictObject({
  greeting: v.optional(fromEnv("GREETING", v.string()), "Hello"),
  limit: v.optional(fromEnv("LIMIT", v.pipe(v.number(), v.integer(), v.minValue(1)))),
  loud: v.optional(fromEnv("LOUD", v.boolean()), false),
  folder: v.optional(fromEnv("FOLDER", filePath()), "data"),
  names: v.optional(fromEnv("NAMES", v.array(v.string())), []),
  models: v.optional(fromEnv("MODELS", v.union([v.array(v.string()), v.literal("discover")]))),
  key: v.optional(secretFromEnv("KEY")),
  headers: v.optional(v.record(v.string(), secret())),
  nested: v.optional(
    v.strictObject({ inner: v.optional(v.strictObject({ value: v.optional(fromEnv("VALUE", v.string()), "deep") }), {}) }),
    {},
  ),
});

const file = (content: unknown) => ({ path: "/etc/app/app.json", content });

function problems(sources: Parameters<typeof loadConfig>[1], of: Parameters<typeof loadConfig>[0] = schema): string[] {
  try {
    loadConfig(of, sources);
  } catch (error) {
    if (error instanceof ConfigUnusable) return error.message.split("\n");
    throw error;
  }
  throw new Error("The configuration was taken");
}

describe("sources of a configuration", () => {
  it("defaults apply to keys that are not set; their paths are relative to the working directory", () => {
    expect(loadConfig(schema, { cwd: "/srv" }).value).toMatchObject({
      greeting: "Hello",
      loud: false,
      folder: "/srv/data",
      nested: { inner: { value: "deep" } },
    });
  });

  it("file, environment and flag win in this order, each key for itself", () => {
    const content = { greeting: "file", limit: 1, nested: { inner: { value: "file" } } };
    const sources = {
      file: file(content),
      env: { LIMIT: "2", VALUE: "env" },
      flags: [{ key: "nested.inner.value", flag: "--value", value: "flag" }],
    };

    expect(loadConfig(schema, sources).value).toMatchObject({ greeting: "file", limit: 2, nested: { inner: { value: "flag" } } });
  });

  it("options given in code replace the file; their paths are relative to the working directory", () => {
    const sources = { options: { greeting: "code", folder: "own", limit: 1, key: { env: "SECRET" } }, cwd: "/srv" };
    const { value, settings } = loadConfig(schema, { ...sources, env: { LIMIT: "2", SECRET: "s" } });
    expect(value).toMatchObject({ greeting: "code", folder: "/srv/own", limit: 2, loud: false });
    expect(value.key!.reveal()).toBe("s");
    expect(Object.fromEntries(settings.map(({ path, source }) => [path, source]))).toMatchObject({
      ...{ greeting: "options", folder: "options", limit: "environment LIMIT", loud: "default" },
    });
    expect(problems({ options: { greeting: 1, gretings: "x" } })).toEqual([
      'gretings: expected no such key, found a string (options); did you mean "greeting"?',
      "greeting: expected a string, found 1 (options)",
    ]);
  });

  it("a group that has to be there is reported by the keys that it lacks, and one that may be absent is not", () => {
    const host = v.strictObject({ folder: filePath(), port: v.optional(v.number(), 1), token: secretFromEnv("TOKEN") });
    const group = v.strictObject({ host, guest: v.optional(host), way: v.union([host, v.strictObject({ near: v.boolean() })]) });
    expect(problems({}, group)).toEqual([
      "host.folder: expected a path, found nothing",
      'host.token: expected a string, {"env": "NAME"} or {"file": "PATH"}, found nothing; TOKEN sets it',
      "way: expected an object, found nothing",
    ]);
  });

  it("a flag that was not given and an empty variable set nothing", () => {
    const sources = {
      file: file({ greeting: "file" }),
      env: { GREETING: "" },
      flags: [{ key: "greeting", flag: "--greeting", value: undefined }],
    };

    expect(loadConfig(schema, sources).value.greeting).toBe("file");
  });

  it("a list is taken whole from the strongest source", () => {
    expect(loadConfig(schema, { file: file({ names: ["a", "b"] }), env: { NAMES: '["c"]' } }).value.names).toEqual(["c"]);
  });

  it.each([
    [{ LIMIT: "12" }, { limit: 12 }],
    [{ LOUD: "true" }, { loud: true }],
    [{ NAMES: '["a"]' }, { names: ["a"] }],
    [{ MODELS: "discover" }, { models: "discover" }],
    [{ MODELS: '["m"]' }, { models: ["m"] }],
    [{ GREETING: "12" }, { greeting: "12" }],
  ])("environment text is read as the key's own kind of value: %j", (env, expected) => {
    expect(loadConfig(schema, { env }).value).toMatchObject(expected);
  });

  it.each([
    [{ LIMIT: "12a" }, 'limit: expected a whole number of at least 1, found "12a" (environment LIMIT)'],
    [{ LIMIT: "0x10" }, 'limit: expected a whole number of at least 1, found "0x10" (environment LIMIT)'],
    [{ LIMIT: " 12" }, 'limit: expected a whole number of at least 1, found " 12" (environment LIMIT)'],
    [{ LIMIT: "0" }, "limit: expected a whole number of at least 1, found 0 (environment LIMIT)"],
    [{ LOUD: "yes" }, 'loud: expected true or false, found "yes" (environment LOUD)'],
    [{ NAMES: "a,b" }, "names: expected a list, each a string, written as JSON, found text that is not JSON (environment NAMES)"],
    [{ MODELS: "all" }, 'models: expected a list, each a string or "discover", found "all" (environment MODELS)'],
  ])("environment text that is nearly right is refused: %j", (env, line) => {
    expect(problems({ env })).toEqual([line]);
  });

  it("relative paths start from the file's folder in the file, and from the working directory elsewhere", () => {
    expect(loadConfig(schema, { file: file({ folder: "x" }), cwd: "/srv" }).value.folder).toBe("/etc/app/x");
    expect(loadConfig(schema, { file: file({ folder: "x" }), env: { FOLDER: "y" }, cwd: "/srv" }).value.folder).toBe("/srv/y");
    expect(loadConfig(schema, { file: file({ folder: "/abs" }), cwd: "/srv" }).value.folder).toBe("/abs");
  });

  it("a __proto__ in a file is an unknown key and changes no prototype", () => {
    const content: unknown = JSON.parse('{ "__proto__": { "polluted": true }, "nested": { "__proto__": { "polluted": true } } }');

    expect(problems({ file: file(content) })).toHaveLength(2);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("secrets in a configuration", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "portico-config-"));
    writeFileSync(join(folder, "key"), "of-file\n");
    writeFileSync(join(folder, "empty"), "\n");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const keyOf = (written: unknown, env: Record<string, string> = {}) => {
    const { key } = loadConfig(schema, { file: { path: join(folder, "app.json"), content: { key: written } }, env }).value;
    return key?.reveal();
  };

  it("is a string, an environment variable's value, or a file's, without the line break at its end", () => {
    expect(keyOf("of-string")).toBe("of-string");
    expect(keyOf({ env: "NAME" }, { NAME: "of-env" })).toBe("of-env");
    expect(keyOf({ file: "key" })).toBe("of-file");
    expect(keyOf(new Secret("of-code"))).toBe("of-code");
  });

  it("is a file of the folder in which a service manager keeps the credentials of a service", () => {
    const written = { file: "$CREDENTIALS_DIRECTORY/key" };
    expect(keyOf(written, { CREDENTIALS_DIRECTORY: folder })).toBe("of-file");
    expect(() => keyOf(written)).toThrow("environment variable CREDENTIALS_DIRECTORY to be set by the service manager");
    expect(() => keyOf({ file: "$HOME/key" }, { HOME: folder })).toThrow("found none (ENOENT)");
  });

  it("is looked up in records and lists, too", () => {
    const { headers } = loadConfig(schema, { file: file({ headers: { a: { env: "NAME" } } }), env: { NAME: "of-env" } }).value;

    expect(headers?.["a"]?.reveal()).toBe("of-env");
  });

  it("is never shown, also if it is written in place of a reference or under an unknown key", () => {
    const lines = [
      ...problems({ file: file({ key: { env: "sk-live-1" }, keey: "sk-live-2" }) }),
      ...problems({ file: file({ key: { value: "sk-live-3" } }) }),
      ...problems({ file: file({ key: { file: "sk-live-4" } }) }),
      ...problems({ file: file({ key: ["sk-live-5"] }) }),
      ...problems({ file: file({ key: 12_345 }) }),
    ];

    expect(lines).toEqual([
      "key: expected the environment variable that it names to be set, found nothing (file /etc/app/app.json)",
      'keey: expected no such key, found a string (file /etc/app/app.json); did you mean "key"?',
      'key: expected a string, {"env": "NAME"} or {"file": "PATH"}, found an object (file /etc/app/app.json)',
      "key: expected a readable file with the secret in it, found none (ENOENT) (file /etc/app/app.json)",
      'key: expected a string, {"env": "NAME"} or {"file": "PATH"}, found a list (file /etc/app/app.json)',
      'key: expected a string, {"env": "NAME"} or {"file": "PATH"}, found a number (file /etc/app/app.json)',
    ]);
    expect(lines.join()).not.toContain("sk-live");
  });

  it("an empty secret is refused", () => {
    expect(() => keyOf("")).toThrow("key: expected a string");
    expect(() => keyOf({ env: "NAME" }, { NAME: "" })).toThrow("environment variable NAME to be set, found an empty one");
    expect(() => keyOf({ file: "empty" })).toThrow("a file with the secret in it, found an empty file");
  });
});

describe("reports of what is wrong", () => {
  it("tell every problem at once, unknown keys of one object among them", () => {
    expect(problems({ file: file({ greting: 1, lmit: 2, loud: "no", nested: { inner: 3 } }) })).toEqual([
      'greting: expected no such key, found a number (file /etc/app/app.json); did you mean "greeting"?',
      'lmit: expected no such key, found a number (file /etc/app/app.json); did you mean "limit"?',
      'loud: expected true or false, found "no" (file /etc/app/app.json)',
      "nested.inner: expected an object, found 3 (file /etc/app/app.json)",
    ]);
  });

  it("list the known keys if no similar key exists", () => {
    expect(problems({ file: file({ nested: { zzz: null } }) })).toEqual([
      "nested.zzz: expected no such key, found null (file /etc/app/app.json); known keys: inner",
    ]);
  });

  it("say it in the schema author's words where there are some, by the item's index", () => {
    const people = v.strictObject({
      people: v.array(v.strictObject({ name: v.pipe(v.string(), v.regex(/^[A-Z]/, "a name with a capital letter")) })),
    });

    expect(problems({ file: file({ people: [{ name: "Ann" }, { name: "bob" }, {}] }) }, people)).toEqual([
      'people.1.name: expected a name with a capital letter, found "bob" (file /etc/app/app.json)',
      "people.2.name: expected a name with a capital letter, found nothing (file /etc/app/app.json)",
    ]);
  });

  it("stay on one line, cut long values, and hide the password of an address", () => {
    const [line] = problems({ file: file({ loud: `a\nb https://user:sk-pass@host/ ${"x".repeat(200)}` }) });

    expect(line).toContain('found "a\\nb https://***@host/');
    expect(line?.length).toBeLessThan(200);
  });

  it("refuse a file that is not an object", () => {
    expect(problems({ file: file(["a"]) })).toEqual([
      "(configuration): expected an object, found a list (file /etc/app/app.json)",
    ]);
  });
});
