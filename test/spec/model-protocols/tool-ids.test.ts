import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toolIdForChat, toolIdForFunctionCall, toolIdForMessages } from "../../../core/src/model-protocols/tool-ids.ts";

/** IDs as vendors make them, invalid IDs, and IDs of an attacker who knows how they are rewritten. */
const anyId = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.stringMatching(/^[a-zA-Z0-9_-]{1,60}$/),
  fc.stringMatching(/^(esc|sha|big)-[a-zA-Z0-9_-]{0,40}$/),
  fc.stringMatching(/^esc-(-00[0-9a-f]{2}|[a-z]){0,6}$/),
  fc.string({ minLength: 511, maxLength: 520 }),
  fc.stringMatching(/^functions\.[a-z_]{1,12}:[0-9]$/),
);

describe("an id that fits both protocols", () => {
  it.each(["call_abc", "toolu_01D7FLrfh4GYq7yT1ULFeyMV", "a", "x".repeat(40)])("stays as it is: %s", (id) => {
    expect(toolIdForMessages(id)).toBe(id);
    expect(toolIdForChat(id)).toBe(id);
  });
});

describe("an id of Chat Completions", () => {
  it.each(["functions.get_weather:0", "", "a b", "工具", "\ud800", "esc-", "esc--002e", "x".repeat(41), "call/1|2"])(
    "is one that Messages accepts, and comes back to its provider unchanged: %j",
    (id) => {
      const messagesId = toolIdForMessages(id);
      expect(messagesId).toMatch(/^[a-zA-Z0-9_-]+$/);
      expect(messagesId).not.toBe(id);
      expect(toolIdForChat(messagesId)).toBe(id);
    },
  );

  it("of up to 512 characters comes back unchanged, unless it looks like our own hash", () => {
    fc.assert(
      fc.property(anyId, (id) => {
        expect(toolIdForMessages(id)).toMatch(/^[a-zA-Z0-9_-]+$/);
        if (id.length <= 512 && !id.startsWith("sha-")) expect(toolIdForChat(toolIdForMessages(id))).toBe(id);
      }),
    );
  });
});

it.each(["!".repeat(513), "a".repeat(1_000_000), `esc-${"-0021".repeat(1_000_000)}`])(
  "an id of absurd length becomes a short one",
  (id) => {
    expect(toolIdForMessages(id)).toMatch(/^big-[a-zA-Z0-9_-]{36}$/);
    expect(toolIdForChat(id)).toMatch(/^sha-[a-zA-Z0-9_-]{36}$/);
  },
);

describe("an id of Messages", () => {
  it.each(["x".repeat(41), "toolu:1", "", "sha-1", "esc-not-escaped"])("becomes one of at most 40 characters: %j", (id) => {
    expect(toolIdForChat(id)).toMatch(/^sha-[a-zA-Z0-9_-]{36}$/);
  });
});

it.each([
  ["Messages", toolIdForMessages],
  ["Chat Completions", toolIdForChat],
])("two ids never become one on the way to %s", (_, convert) => {
  fc.assert(
    fc.property(fc.uniqueArray(anyId, { minLength: 2, maxLength: 8 }), (ids) => {
      // Ids together with what they are rewritten to, which are the likeliest to meet.
      const all = new Set([...ids, ...ids.map(toolIdForMessages), ...ids.map(toolIdForChat)]);
      expect(new Set([...all].map(convert)).size).toBe(all.size);
    }),
  );
});

it("ids that differ in half a character stay apart", () => {
  expect(toolIdForChat("\ud800")).not.toBe(toolIdForChat("\ud801"));
  expect(toolIdForMessages("\ud800")).not.toBe(toolIdForMessages("\ud801"));
});

it("a legacy function call gets an id that no other id can become", () => {
  // The likeliest to meet it: what its own text would be read back as, and itself.
  for (const turn of [0, 7, 1234, 99_999]) {
    const legacy = toolIdForFunctionCall(turn);
    expect(legacy).toMatch(/^[a-zA-Z0-9_-]+$/);
    for (const id of [legacy, legacy.slice("esc-".length), toolIdForChat(legacy)]) expect(toolIdForMessages(id)).not.toBe(legacy);
  }
});
