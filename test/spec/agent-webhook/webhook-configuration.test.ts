import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { eventBody, isEventName, readWebhooks } from "../../../plugins/src/agent-webhook/webhook-configuration.ts";

const parsed = (json: string): unknown => JSON.parse(json);
const event = { promptTemplate: "Say {{text}}", toolIds: ["SendUserMessage"] };
const ids = (count: number) => Array.from({ length: count }, (_, index) => `server/tool-${index}`);

describe("an event's name (4.3)", () => {
  it.each(["a", "Z", "0", "order.created", "a_b-c.d", "9..--__", "x".repeat(128), "Constructor", "proto", "toString", "valueOf"])(
    "%s is one",
    (name) => {
      expect(isEventName(name)).toBe(true);
    },
  );

  it.each([
    ...["", ".a", "_a", "-a", "a b", "a/b", "a:b", "é", "aé", "a\n", "a\0", "x".repeat(129), "😀"],
    ...["constructor", "prototype", "__proto__"],
  ])("%j is none", (name) => {
    expect(isEventName(name)).toBe(false);
  });

  it("is decided by its characters and its length alone", () => {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const character = fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...letters, ".", "_", "-") },
      fc.string({ unit: "binary" }),
    );
    const text = fc.oneof(
      fc.array(character, { maxLength: 8 }).map((characters) => characters.join("")),
      fc.integer({ min: 120, max: 135 }).map((length) => "a".repeat(length)),
    );
    fc.assert(
      fc.property(text, (name) => {
        const isMadeOf = [...name].every((one, index) => letters.includes(one) || (index > 0 && "._-".includes(one)));
        expect(isEventName(name)).toBe(
          isMadeOf && name !== "" && name.length < 129 && !["constructor", "prototype"].includes(name),
        );
      }),
      { numRuns: 1000 },
    );
  });
});

/** What 4.3 says of the fields of an event: of one that is saved, and of one that stands in the file. */
const right: readonly (readonly [what: string, fields: object])[] = [
  ["the least: a template and no tools", { promptTemplate: "x", toolIds: [] }],
  ["a template of 32,768 characters", { ...event, promptTemplate: "é".repeat(32_768) }],
  ["512 tools", { ...event, toolIds: ids(512) }],
  ["tools in two spellings", { ...event, toolIds: ["a", "A"] }],
  ["1 turn", { ...event, maxTurns: 1 }],
  ["100 turns", { ...event, maxTurns: 100 }],
];

const wrong: readonly (readonly [what: string, fields: object])[] = [
  ["a template of 32,769 characters", { ...event, promptTemplate: "x".repeat(32_769) }],
  ["an empty template", { ...event, promptTemplate: "" }],
  ["no template", { toolIds: [] }],
  ["a template that is no text", { ...event, promptTemplate: ["x"] }],
  ["513 tools", { ...event, toolIds: ids(513) }],
  ["a tool twice", { ...event, toolIds: ["a", "b", "a"] }],
  ["a tool without a name", { ...event, toolIds: [""] }],
  ["a tool that is no text", { ...event, toolIds: [1] }],
  ["no list of tools", { promptTemplate: "x" }],
  ["null for the list of tools", { ...event, toolIds: null }],
  ["one tool without a list", { ...event, toolIds: "a" }],
  ["0 turns", { ...event, maxTurns: 0 }],
  ["101 turns", { ...event, maxTurns: 101 }],
  ["half a turn", { ...event, maxTurns: 1.5 }],
  ["turns in words", { ...event, maxTurns: "5" }],
  ["null for the turns", { ...event, maxTurns: null }],
];

describe("the body that saves an event (4.3)", () => {
  it.each(right)("may have %s", (_, fields) => {
    expect(v.parse(eventBody, fields)).toEqual({ maxTurns: 5, ...fields });
  });

  it.each(wrong)("may not have %s", (_, fields) => {
    expect(v.safeParse(eventBody, fields).success).toBe(false);
  });

  it("means 5 turns if it sets no number", () => {
    expect(v.parse(eventBody, event)).toEqual({ ...event, maxTurns: 5 });
  });

  it.each(["enabled", "fileScope", "event", "secret", "constructor", "toString", "__proto__"])("has no field %s", (field) => {
    expect(v.safeParse(eventBody, parsed(`{"promptTemplate":"x","toolIds":[],"${field}":{}}`)).success).toBe(false);
  });

  it.each(["null", "[]", '"x"', "1"])("is not %s", (json) => {
    expect(v.safeParse(eventBody, parsed(json)).success).toBe(false);
  });
});

describe("the webhooks of an agent.json (open points 5)", () => {
  it.each(right)("may have an event with %s", (_, fields) => {
    expect(readWebhooks({ events: { a: fields } })?.events.get("a")).toEqual({ maxTurns: 5, ...fields });
  });

  it.each(wrong)("break their schema by one event with %s", (_, fields) => {
    expect(readWebhooks({ enabled: true, events: { good: event, wrong: fields } })).toBeUndefined();
  });

  it("that are not there were never configured: disabled, without events", () => {
    expect(readWebhooks(undefined)).toEqual({ enabled: false, events: new Map() });
    expect(readWebhooks({})).toEqual({ enabled: false, events: new Map() });
    expect(readWebhooks({ enabled: true })).toEqual({ enabled: true, events: new Map() });
  });

  it("may hold what we do not know, on every level", () => {
    const webhooks = parsed(`{
      "enabled": true, "since": 2030, "__proto__": { "enabled": false },
      "events": {
        "a": { "promptTemplate": "x", "toolIds": [], "note": null, "fileScope": { "userId": "owner", "paths": ["a"] } },
        "toString": { "promptTemplate": "y", "toolIds": [], "maxTurns": 7, "constructor": 1 }
      }
    }`);
    const read = readWebhooks(webhooks)!;
    expect(read.enabled).toBe(true);
    expect([...read.events]).toEqual([
      ["a", { promptTemplate: "x", toolIds: [], maxTurns: 5, fileScope: { userId: "owner" } }],
      ["toString", { promptTemplate: "y", toolIds: [], maxTurns: 7 }],
    ]);
  });

  it("inherited names such as `constructor` are not events", () => {
    const { events } = readWebhooks({ events: { a: event } })!;
    expect(["constructor", "toString", "__proto__", "hasOwnProperty", "A", "b"].filter((name) => events.has(name))).toEqual([]);
  });

  it.each(["__proto__", "constructor", "prototype", "", ".a", "a b", "x".repeat(129)])(
    "break their schema with an event called %j",
    (name) => {
      const text = `{"events":{"good":${JSON.stringify(event)},${JSON.stringify(name)}:${JSON.stringify(event)}}}`;
      expect(readWebhooks(parsed(text))).toBeUndefined();
    },
  );

  it.each([
    ...["null", "true", "[]", '"on"', '{"enabled":1}', '{"enabled":"true"}', '{"enabled":null}'],
    ...[
      '{"events":null}',
      '{"events":[]}',
      '{"events":"a"}',
      '{"events":{"a":null}}',
      '{"events":{"a":[]}}',
      '{"events":{"a":"x"}}',
    ],
    ...[null, [], "owner", {}, { userId: "" }, { userId: 1 }, { userId: "a\0b" }, { userId: "\ud800" }].map((fileScope) =>
      JSON.stringify({ events: { a: { ...event, fileScope } } }),
    ),
  ])("break their schema as %s", (json) => {
    expect(readWebhooks(parsed(json))).toBeUndefined();
  });

  it("are read once as long as the definition lives, whether they are right or not", () => {
    let looks = 0;
    const watched = (enabled: unknown) => ({
      get enabled() {
        looks++;
        return enabled;
      },
    });
    const [right, wrong] = [watched(true), watched(1)];
    const first = readWebhooks(right);
    expect(readWebhooks(wrong)).toBeUndefined();
    const before = looks;
    expect(before).toBeGreaterThan(1);
    expect(readWebhooks(right)).toBe(first);
    expect(readWebhooks(wrong)).toBeUndefined();
    expect(looks).toBe(before);
    expect(readWebhooks(watched(true))).not.toBe(first);
  });
});
