import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { type Adapter, ports } from "@portico/core";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  createWebhookDocument,
  type SavedEvent,
  type WebhookChange,
  WebhookConfigurationChanged,
  WebhookConfigurationInvalid,
} from "../../../plugins/src/agent-webhook/webhook-document.ts";
import { openAdapter } from "../../conformance/open-adapter.ts";

const NAME = "a1/agent.json";
const folder = mkdtempSync(join(tmpdir(), "portico-webhooks-"));
const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
  rmSync(folder, { recursive: true });
});
let folders = 0;

const saved = (name: string, more: Partial<SavedEvent> = {}): SavedEvent => ({
  ...{ name, promptTemplate: "Say {{text}}", toolIds: ["SendUserMessage"], maxTurns: 5, fileScope: { userId: "owner" } },
  ...more,
});

async function open(adapter: Adapter<typeof ports.documents>): Promise<ports.Documents> {
  const { port, close } = await openAdapter(adapter, [systemClock()]);
  closers.push(close);
  return port;
}

/** An agent's file as it lies in a folder, and the webhooks in it. */
async function inFolder(text: string | undefined) {
  const dir = join(folder, `${++folders}`);
  const path = join(dir, NAME);
  mkdirSync(dirname(path), { recursive: true });
  if (text !== undefined) writeFileSync(path, text);
  const documents = await open(unstorageDocuments({ id: "agents", dir }));
  return {
    webhooks: createWebhookDocument({ documents }),
    edit: (edited: string) => writeFileSync(path, edited),
    text: () => readFileSync(path, "utf8"),
  };
}

async function inMemory(texts: Readonly<Record<string, string>>) {
  const documents = await open(memoryDocuments({ id: "agents", texts }));
  return {
    documents,
    webhooks: createWebhookDocument({ documents }),
    text: async (name = NAME) => (await documents.read(name))?.text,
  };
}

/** What the file says after a change. */
async function changed(text: string, change: WebhookChange): Promise<string> {
  const file = await inFolder(text);
  await file.webhooks.change("a1", () => change);
  return file.text();
}

describe("a change of an agent's webhooks keeps the file as its people wrote it (open points 5)", () => {
  it("adds the webhooks at the end, laid out like the rest: two blanks", async () => {
    const text = '{\n  "name": "A",\n\n  "ui": {"color":"red", "sizes": [1,2]}, "core": true,\n  "tools": ["a", "b"]\n}\n';
    expect(await changed(text, { enabled: true, save: saved("order.created") })).toBe(
      `${text.slice(0, -3)},
  "webhooks": {
    "enabled": true,
    "events": {
      "order.created": {
        "promptTemplate": "Say {{text}}",
        "toolIds": [
          "SendUserMessage"
        ],
        "maxTurns": 5,
        "fileScope": {
          "userId": "owner"
        }
      }
    }
  }
}
`,
    );
  });

  it("with tabs, the line breaks of other systems, and no line break at the end", async () => {
    const text = '{\r\n\t"webhooks": {},\r\n\t"name": "A"\r\n}';
    expect(await changed(text, { enabled: true })).toBe(
      '{\r\n\t"webhooks": {\r\n\t\t"enabled": true\r\n\t},\r\n\t"name": "A"\r\n}',
    );
  });

  it("in one line, with blanks and without", async () => {
    const event = '{"promptTemplate":"x","toolIds":["a","b"],"maxTurns":1,"fileScope":{"userId":"owner"}}';
    const save = saved("e", { promptTemplate: "x", toolIds: ["a", "b"], maxTurns: 1 });
    expect(await changed('{"name":"A"}', { save })).toBe(`{"name":"A","webhooks":{"events":{"e":${event}}}}`);
    expect(await changed('{ "name": "A", "webhooks": { "enabled": true } }\n', { save })).toBe(
      `{ "name": "A", "webhooks": { "enabled": true, "events": {"e":${event}} } }\n`,
    );
    expect(await changed("{}", { enabled: true })).toBe('{"webhooks":{"enabled":true}}');
  });

  const written = `{
    "webhooks" : {
        "note": "by hand",
        "events": {
            "a": { "promptTemplate": "A", "toolIds": ["x", "y"], "note": 1 },
            "b": { "promptTemplate": "B", "toolIds": [] },

            "c": {
                "note": { "deep": [1, 2] },
                "fileScope": { "paths": ["p"], "userId": "other" },
                "toolIds": [ "x", "y" ],
                "promptTemplate": "C"
            }
        }, "enabled": true
    },
    "name": "A"
}
`;

  it("replaces of an event what we know of it, in its place, and keeps the rest", async () => {
    expect(await changed(written, { save: saved("c", { promptTemplate: "D", toolIds: ["z", "x"], maxTurns: 9 }) })).toBe(
      written
        .replace('"userId": "other"', '"userId": "owner"')
        .replace('[ "x", "y" ]', '["z", "x"]')
        .replace('"promptTemplate": "C"', '"promptTemplate": "D",\n                "maxTurns": 9'),
    );
    expect(await changed(written, { save: saved("a", { promptTemplate: "A", toolIds: ["y", "x"] }) })).toBe(
      written.replace('["x", "y"], "note": 1', '["y", "x"], "note": 1, "fileScope": {"userId":"owner"}'),
    );
  });

  it("takes away an event, with its comma and its lines only", async () => {
    const [a, b] = [
      '"a": { "promptTemplate": "A", "toolIds": ["x", "y"], "note": 1 }',
      '"b": { "promptTemplate": "B", "toolIds": [] }',
    ];
    const c = written.slice(written.indexOf('"c": {'), written.indexOf("\n        }, "));
    const room = "\n            ";
    expect(await changed(written, { remove: "a" })).toBe(written.replace(`${a},${room}`, ""));
    expect(await changed(written, { remove: "b" })).toBe(written.replace(`,${room}${b}`, ""));
    expect(await changed(written, { remove: "c" })).toBe(written.replace(`,\n${room}${c}`, ""));
    const one = '{\n  "webhooks": {"events": {\n    "a": {"promptTemplate": "A", "toolIds": []}\n  }}\n}';
    expect(await changed(one, { remove: "a" })).toBe('{\n  "webhooks": {"events": {}}\n}');
  });

  it("pauses by one word", async () => {
    expect(await changed(written, { enabled: false })).toBe(written.replace('"enabled": true', '"enabled": false'));
  });

  it("finds names however JSON spells them", async () => {
    const text = String.raw`{"n\u0061me":"A","web\u0068ooks":{"\u0065nabled":false}}`;
    expect(await changed(text, { enabled: true })).toBe(text.replace("false", "true"));
  });

  it("any file formatted by JSON.stringify stays so", async () => {
    await fc.assert(
      fc.asyncProperty(
        definition,
        changes,
        fc.constantFrom("", " ", "  ", "    ", "\t"),
        eol,
        ending,
        async (json, changes, ...layout) => {
          const [unit, eol, ending] = layout;
          const toText = (value: unknown) => JSON.stringify(value, null, unit).replaceAll("\n", eol) + ending;
          const meant = JSON.parse(json) as Definition;
          const { webhooks, text } = await inMemory({ [NAME]: toText(meant) });
          for (const change of changes) {
            apply(meant, change);
            const configuration = await webhooks.change("a1", () => change);
            expect(await text()).toBe(toText(meant));
            expect(configuration.enabled).toBe(meant.webhooks?.enabled ?? false);
            expect([...configuration.events.keys()]).toEqual(Object.keys(meant.webhooks?.events ?? {}));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it("any file in any format: nothing else changes, not even white space", async () => {
    await fc.assert(
      fc.asyncProperty(definition, changes, blanks, fc.boolean(), async (json, [change], blanks, areEscaped) => {
        if (!change) return;
        const { text: before, places } = layOut(JSON.parse(json), blanks, areEscaped);
        const meant = JSON.parse(before) as Definition;
        apply(meant, change);
        const { webhooks, text } = await inMemory({ [NAME]: before });
        await webhooks.change("a1", () => change);
        const after = (await text())!;
        expect(JSON.stringify(JSON.parse(after))).toBe(JSON.stringify(meant));
        const place = places.get("webhooks");
        if (!place) return expectInsertion(before, after);
        expect(after.startsWith(before.slice(0, place[0]))).toBe(true);
        expect(after.endsWith(before.slice(place[1]))).toBe(true);
        for (const [path, [from, to]] of places) {
          const [, events, name] = path.split("\n");
          if (events !== "events" || name === undefined || name === change.save?.name || name === change.remove) continue;
          expect(after).toContain(before.slice(from, to));
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a change that changes nothing", () => {
  it("does not write", async () => {
    const event = '{"promptTemplate":"Say {{text}}","toolIds":["SendUserMessage"],"fileScope":{"userId":"owner","more":1}}';
    const { documents, webhooks, text } = await inMemory({
      [NAME]: `{"webhooks":{"events":{"a":${event}}}}`,
      "a2/agent.json": "{}",
    });
    const told: string[] = [];
    await documents.watch((name) => told.push(name));
    const before = await text();
    for (const change of [{}, { enabled: false }, { save: saved("a") }, { remove: "b" }, { enabled: false, save: saved("a") }]) {
      expect([...(await webhooks.change("a1", () => change)).events.keys()]).toEqual(["a"]);
    }
    expect(await webhooks.change("a2", () => ({ enabled: false, remove: "toString" }))).toEqual({
      enabled: false,
      events: new Map(),
    });
    expect([told, await text()]).toEqual([[], before]);
    await webhooks.change("a1", () => ({ enabled: true }));
    expect(told).toEqual([NAME]);
  });
});

describe("an agent.json that another program changes between reading and writing", () => {
  const before = '{\n  "name": "A"\n}\n';
  const after = '{\n  "name": "B"\n}\n';

  it("stays as that person wrote it, and the change is refused", async () => {
    const file = await inFolder(before);
    const attempt = file.webhooks.change("a1", () => {
      file.edit(after);
      return { enabled: true, save: saved("a") };
    });
    await expect(attempt).rejects.toThrow(WebhookConfigurationChanged);
    await expect(attempt).rejects.toMatchObject({ cause: expect.any(ports.DocumentConflict) });
    expect(file.text()).toBe(after);
    await file.webhooks.change("a1", () => ({ enabled: true }));
    expect(JSON.parse(file.text())).toEqual({ name: "B", webhooks: { enabled: true } });
  });

  it("is not made again where that person took it away", async () => {
    const { documents, webhooks, text } = await inMemory({ [NAME]: before });
    const attempt = webhooks.change("a1", async () => {
      await documents.remove(NAME, (await documents.read(NAME))!.version);
      return { enabled: true };
    });
    await expect(attempt).rejects.toThrow(WebhookConfigurationChanged);
    expect(await text()).toBeUndefined();
  });

  it("is read again for each change", async () => {
    const file = await inFolder(before);
    await file.webhooks.change("a1", () => ({ save: saved("a") }));
    file.edit(before);
    const told: string[][] = [];
    await file.webhooks.change("a1", ({ events }) => {
      told.push([...events.keys()]);
      return {};
    });
    expect([told, file.text()]).toEqual([[[]], before]);
  });
});

describe("an agent.json that cannot be changed without harm", () => {
  const event = '{"promptTemplate":"private","toolIds":[]}';
  const unreadable: readonly (readonly [what: string, text: string | undefined])[] = [
    ["is not there", undefined],
    ["is empty", ""],
    ["is no JSON", '{"name":"private",}'],
    ["has comments", '{"name":"A" /* private */}'],
    ["is no object", '["private"]'],
    ["is null", "null"],
    ["has webhooks that are no object", '{"webhooks":["private"]}'],
    ["has webhooks that break their schema", '{"webhooks":{"events":{"a":{"promptTemplate":"private"}}}}'],
    ["has an event that is called like what objects inherit", `{"webhooks":{"events":{"__proto__":${event}}}}`],
  ];
  const uneditable: readonly (readonly [what: string, text: string])[] = [
    ["has webhooks twice", `{"webhooks":{"events":{"x":${event}}},"webhooks":{"events":{"a":${event}}}}`],
    ["has webhooks twice, in two spellings", String.raw`{"webhooks":{},"web\u0068ooks":{"events":{}}}`],
    ["has webhooks twice, first as no object", '{"webhooks":"private","webhooks":{"events":{}}}'],
    ["has webhooks twice, first as a list", '{"webhooks":["private"],"webhooks":{"events":{}}}'],
    ["has events twice", `{"webhooks":{"events":{"a":${event}},"events":{"b":${event}}}}`],
    ["has the event twice", `{"webhooks":{"events":{"a":${event},"a":${event}}}}`],
    [
      "has a field of the event twice",
      '{"webhooks":{"events":{"a":{"promptTemplate":"p","toolIds":[],"promptTemplate":"private"}}}}',
    ],
    ["nests too deep", `{"private":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ];

  it.each(unreadable)("which %s: no change is even decided", async (_, text) => {
    const file = await inFolder(text);
    let isAsked = false;
    const attempt = file.webhooks.change("a1", () => {
      isAsked = true;
      return {};
    });
    await expectInvalid(attempt);
    expect(isAsked).toBe(false);
    if (text === undefined) expect(() => file.text()).toThrow("ENOENT");
    else expect(file.text()).toBe(text);
  });

  it.each(uneditable)("which %s: the change is refused, and the file stays", async (_, text) => {
    const file = await inFolder(text);
    await expectInvalid(file.webhooks.change("a1", () => ({ enabled: true, save: saved("a") })));
    expect(file.text()).toBe(text);
  });

  it("may begin with a byte order mark, which stays", async () => {
    const after = await changed('\ufeff{"name":"A"}', { enabled: true, save: saved("a") });
    expect(after.startsWith('\ufeff{"name":"A"')).toBe(true);
    expect(JSON.parse(after.slice(1))).toMatchObject({ name: "A", webhooks: { events: { a: {} } } });
  });

  it("keeps duplicate names that the change does not touch", async () => {
    const text = `{"name":"A","name":"B","webhooks":{"x":1,"x":2,"events":{"b":${event},"b":${event}}}}`;
    const after = await changed(text, { enabled: true, save: saved("a") });
    expect(after.startsWith(text.slice(0, -3))).toBe(true);
    expect(JSON.parse(after)).toMatchObject({ name: "B", webhooks: { enabled: true, events: { b: {}, a: {} } } });
  });

  it("is not changed into one whose webhooks break their schema", async () => {
    const file = await inFolder("{}");
    for (const save of [saved("__proto__"), saved("a b"), saved("a", { maxTurns: 0 }), saved("a", { toolIds: ["x", "x"] })]) {
      await expect(file.webhooks.change("a1", () => ({ save }))).rejects.toThrow(WebhookConfigurationInvalid);
    }
    expect(file.text()).toBe("{}");
  });
});

describe("several changes at the same time", () => {
  it("of one agent run one after another: no conflict occurs, and no change is lost", async () => {
    const file = await inFolder('{"name":"A"}');
    const names = Array.from({ length: 20 }, (_, index) => `event-${index}`);
    const counts = await Promise.all(
      names.map(async (name) => (await file.webhooks.change("a1", () => ({ save: saved(name) }))).events.size),
    );
    expect(counts).toEqual(names.map((_, index) => index + 1));
    expect(Object.keys((JSON.parse(file.text()) as Definition).webhooks!.events!)).toEqual(names);
  });

  it("of one agent follow one another also when one comes while the last that waited is under way", async () => {
    const { documents, webhooks, text } = await inMemory({ [NAME]: "{}" });
    const order: string[] = [];
    let third: Promise<unknown> | undefined;
    const first = webhooks.change("a1", () => ({ save: saved("first") }));
    const second = webhooks.change("a1", async () => {
      order.push("second begins");
      third = webhooks.change("a1", () => {
        order.push("third begins");
        return { save: saved("third") };
      });
      // Longer than the third would take to begin.
      for (let reads = 0; reads < 100; reads++) await documents.read(NAME);
      order.push("second ends");
      return { save: saved("second") };
    });
    await Promise.all([first, second]);
    await third;
    expect(order).toEqual(["second begins", "second ends", "third begins"]);
    expect(Object.keys((JSON.parse((await text())!) as Definition).webhooks!.events!)).toEqual(["first", "second", "third"]);
  });

  it("of two agents do not wait for each other", async () => {
    const { webhooks, text } = await inMemory({ [NAME]: "{}", "a2/agent.json": "{}" });
    await webhooks.change("a1", async () => {
      await webhooks.change("a2", () => ({ enabled: true }));
      return { enabled: true };
    });
    expect([await text(), await text("a2/agent.json")]).toEqual(Array(2).fill('{"webhooks":{"enabled":true}}'));
  });

  it("go on after one that was refused, which has written nothing", async () => {
    const { webhooks, text } = await inMemory({ [NAME]: "{}" });
    const refused = webhooks.change("a1", () => {
      throw new RangeError("refused");
    });
    const next = webhooks.change("a1", ({ enabled }) => ({ enabled: !enabled }));
    await expect(refused).rejects.toThrow("refused");
    expect(await next).toEqual({ enabled: true, events: new Map() });
    expect(await text()).toBe('{"webhooks":{"enabled":true}}');
  });
});

interface Definition {
  webhooks?: { enabled?: boolean; events?: Record<string, Record<string, unknown>> };
}

/** The change, made on what the file says. */
function apply(definition: Definition, { enabled, save, remove }: WebhookChange): void {
  if (enabled !== undefined && enabled !== (definition.webhooks?.enabled ?? false))
    (definition.webhooks ??= {}).enabled = enabled;
  const there = definition.webhooks?.events;
  if (there && remove !== undefined) delete there[remove];
  if (!save) return;
  const { name, promptTemplate, toolIds, maxTurns, fileScope } = save;
  const events = ((definition.webhooks ??= {}).events ??= {});
  if (!Object.hasOwn(events, name)) {
    events[name] = { promptTemplate, toolIds, maxTurns, fileScope };
    return;
  }
  const event = events[name]!;
  Object.assign(event, { promptTemplate, toolIds });
  if ((event["maxTurns"] ?? 5) !== maxTurns) event["maxTurns"] = maxTurns;
  event["fileScope"] = { ...(event["fileScope"] as object | undefined), ...fileScope };
}

// A definition is generated as text, so that `__proto__` in it is a field.
const prompt = fc.oneof(fc.constantFrom("A", "B", '\ud800\u2028\n\t"\\', "{{a}}"), fc.string({ minLength: 1, maxLength: 6 }));
const toolIds = fc.uniqueArray(fc.constantFrom("x", "y", "server/z"), { maxLength: 3 });
const maxTurns = fc.constantFrom(1, 5, 100);
const eventName = fc.constantFrom("a", "b.c", "toString", "hasOwnProperty", "x-1");
const fileScope = fc.record({ userId: fc.constantFrom("owner", "other") });
const unknown = fc.tuple(fc.constantFrom("note", "__proto__", "constructor", "é", 'x"\\'), fc.jsonValue({ maxDepth: 2 }));
const blank = fc.constantFrom("", "", " ", "\n", "\r\n", "\t", "  \n\n ", "\r\n    ");
const blanks = fc.array(blank, { minLength: 1, maxLength: 12 });
const eol = fc.constantFrom("\n", "\r\n");
const ending = fc.constantFrom("", "\n", "\r\n", " \n\n");

const event = membersOf(
  fc.tuple(fc.constant("promptTemplate"), prompt.map(json)),
  fc.tuple(fc.constant("toolIds"), toolIds.map(json)),
  maybe(fc.tuple(fc.constant("maxTurns"), maxTurns.map(json))),
  maybe(
    fc.tuple(
      fc.constant("fileScope"),
      membersOf(
        maybe(member(unknown)),
        fileScope.map(({ userId }) => ["userId", json(userId)]),
      ),
    ),
  ),
  maybe(member(unknown)),
);
const events = fc
  .uniqueArray(fc.tuple(eventName, event), { selector: ([name]) => name, maxLength: 3 })
  .map((events) => objectText(events));
const webhooks = membersOf(
  maybe(fc.tuple(fc.constant("enabled"), fc.boolean().map(json))),
  maybe(fc.tuple(fc.constant("events"), events)),
  maybe(member(unknown)),
);
const definition = membersOf(
  fc.constant(["name", '"A"'] as const),
  maybe(member(unknown)),
  maybe(fc.tuple(fc.constant("webhooks"), webhooks)),
);
const changes: fc.Arbitrary<WebhookChange[]> = fc.array(
  fc.record(
    {
      enabled: fc.boolean(),
      save: fc.record({ name: eventName, promptTemplate: prompt, toolIds, maxTurns, fileScope }),
      remove: eventName,
    },
    { requiredKeys: [] },
  ),
  { minLength: 1, maxLength: 3 },
);

type Member = readonly [name: string, json: string];

function json(value: unknown): string {
  return JSON.stringify(value);
}

function member(arbitrary: fc.Arbitrary<[string, unknown]>): fc.Arbitrary<Member> {
  return arbitrary.map(([name, value]) => [name, json(value)]);
}

function maybe<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.option(arbitrary, { nil: undefined });
}

/** An object of these members in any order. */
function membersOf(...members: readonly fc.Arbitrary<Member | undefined>[]): fc.Arbitrary<string> {
  return fc
    .tuple(fc.tuple(...members), fc.array(fc.nat(99), { minLength: members.length, maxLength: members.length }))
    .map(([given, order]) => {
      const ranked = given.map((member, index) => ({ member, rank: order[index]! }));
      return objectText(ranked.sort((a, b) => a.rank - b.rank).flatMap(({ member }) => (member ? [member] : [])));
    });
}

function objectText(members: readonly Member[]): string {
  return `{${members.map(([name, value]) => `${json(name)}:${value}`).join(",")}}`;
}

/** The text of a value with these blanks between its tokens, in turn, and where the values of members stand, by path. */
function layOut(value: unknown, blanks: readonly string[], areEscaped: boolean) {
  const places = new Map<string, readonly [from: number, to: number]>();
  let [text, count] = ["", 0];
  const put = (token: string): void => {
    text += token + blanks[count++ % blanks.length]!;
  };
  const spell = (name: string): string =>
    areEscaped ? `"${[...name].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"` : json(name);
  const lay = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== "object" || value === null) return put(json(value));
    const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
    put(open!);
    for (const [index, [name, inner]] of Object.entries(value as object).entries()) {
      if (index > 0) put(",");
      if (open === "{") {
        put(spell(name));
        put(":");
      }
      const from = text.length;
      lay(inner, [...path, name]);
      places.set([...path, name].join("\n"), [from, text.length - blanks[(count - 1) % blanks.length]!.length]);
    }
    put(close!);
  };
  text += blanks[count++ % blanks.length]!;
  lay(value, []);
  return { text, places };
}

/** Refused, and not a word of the file in the error. */
async function expectInvalid(attempt: Promise<unknown>): Promise<void> {
  const error = await attempt.catch((error: unknown) => error);
  expect(error).toBeInstanceOf(WebhookConfigurationInvalid);
  for (let cause = error; cause instanceof Error; cause = cause.cause) expect(cause.message).not.toMatch(/private|prompt/);
}

function expectInsertion(before: string, after: string): void {
  let [head, tail] = [0, 0];
  while (head < before.length && before[head] === after[head]) head++;
  while (tail < before.length && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  expect(head + tail).toBeGreaterThanOrEqual(before.length);
}
