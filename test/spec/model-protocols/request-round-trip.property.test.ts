import { ports } from "@portico/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConversionRefused, type ConvertedRequest } from "../../../core/src/model-protocols/request/fields.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../core/src/model-protocols/json.ts";
import { requestToChat as requestToDialect, requestToMessages } from "../../../core/src/model-protocols/convert-request.ts";
import { anyChatRequest, anyMessagesRequest } from "./any-request.ts";
import { meaningOfChat, meaningOfMessages } from "./meaning.ts";
import { propertyRuns } from "../../harness/property-runs.ts";

const RUNS = { numRuns: propertyRuns(500) };
const requestToChat = (body: JsonObject) => requestToDialect(body, ports.PUBLISHED_CHAT_DIALECT);

describe("any valid request keeps its meaning", () => {
  it("from Messages to Chat Completions, and there and back", () => {
    fc.assert(
      fc.property(anyMessagesRequest, (body) => {
        const chat = wire(requestToChat(body).body);
        expect(meaningOfChat(chat)).toEqual(meaningOfMessages(body));
        expect(meaningOfMessages(wire(requestToMessages(chat).body))).toEqual(meaningOfMessages(body));
      }),
      RUNS,
    );
  });

  it("from Chat Completions to Messages, and there and back", () => {
    fc.assert(
      fc.property(anyChatRequest, (body) => {
        const messages = wire(requestToMessages(body).body);
        expect(meaningOfMessages(messages)).toEqual(meaningOfChat(body));
        expect(meaningOfChat(wire(requestToChat(messages).body))).toEqual(meaningOfChat(body));
      }),
      RUNS,
    );
  });
});

describe("any converted request obeys its protocol's grammar", () => {
  it("of Messages: turns alternate from the user's, results come first, no text is blank, ids fit the pattern", () => {
    fc.assert(
      fc.property(anyChatRequest, (body) => {
        const { messages } = requestToMessages(body).body as { messages: { role: string; content: string | JsonObject[] }[] };
        messages.forEach((turn, index) => {
          expect(turn.role).toBe(index % 2 === 0 ? "user" : "assistant");
          const blocks: JsonObject[] = typeof turn.content === "string" ? [{ type: "text", text: turn.content }] : turn.content;
          expect(blocks).not.toEqual([]);
          const kinds = blocks.map((block) => block.type === "tool_result");
          expect(kinds.lastIndexOf(true)).toBe(kinds.filter(Boolean).length - 1);
          for (const block of blocks) {
            if (block.type === "text") expect(block.text).toMatch(/\S/);
            const id = block.id ?? block.tool_use_id;
            if (id !== undefined) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
          }
        });
      }),
      RUNS,
    );
  });

  it("of Chat Completions: tool messages follow their calls at once, and hold text alone", () => {
    fc.assert(
      fc.property(anyMessagesRequest, (body) => {
        let open: unknown[] = [];
        for (const message of requestToChat(body).body.messages as unknown as JsonObject[]) {
          if (message.role === "tool") {
            expect(typeof message.content).toBe("string");
            expect(open).toContain(message.tool_call_id);
            open = open.filter((id) => id !== message.tool_call_id);
          } else {
            expect(open).toEqual([]);
          }
          for (const call of (message.tool_calls ?? []) as unknown as JsonObject[]) {
            expect(String(call.id).length).toBeLessThanOrEqual(40);
            open.push(call.id);
          }
        }
      }),
      RUNS,
    );
  });
});

describe("any JSON object whatsoever converts or is refused", () => {
  const conversions: [string, (body: JsonObject) => ConvertedRequest, fc.Arbitrary<JsonObject>][] = [
    ["towards Chat Completions", requestToChat, anyMessagesRequest],
    ["towards Messages", requestToMessages, anyChatRequest],
  ];

  it.each(conversions)("%s: one made of anything", (_, convert) => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => check(convert, wire(body as JsonObject))),
      RUNS,
    );
  });

  it.each(conversions)("%s: a valid one in which any one value is another", (_, convert, valid) => {
    fc.assert(
      fc.property(valid, fc.array(fc.nat(), { minLength: 1, maxLength: 8 }), strangeValue, (body, way, value) =>
        check(convert, replaced(body, way, value)),
      ),
      { numRuns: propertyRuns(3_000) },
    );
  });

  it.each(conversions)("%s: one that reaches for the prototype", (_, convert, valid) => {
    fc.assert(
      fc.property(valid, fc.array(fc.nat(), { minLength: 1, maxLength: 8 }), (body, way) => {
        check(
          convert,
          replaced(body, way, JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}')),
        );
        expect(({} as JsonObject).polluted).toBeUndefined();
      }),
      RUNS,
    );
  });
});

const words = [
  "text",
  "image",
  "image_url",
  "file",
  "document",
  "tool_use",
  "tool_result",
  "thinking",
  "function",
  "base64",
  "url",
  "user",
  "tool",
  "auto",
  "__proto__",
];
const strangeValue: fc.Arbitrary<Json> = fc.oneof(
  fc.jsonValue() as fc.Arbitrary<Json>,
  fc.constantFrom<Json>(null, [], {}, "", 0, -1, 1e308, true, [null], [[]], [{}], { type: null }, { role: "user" }),
  fc.constantFrom(...words),
  fc.constantFrom(...words).map((type) => ({ type })),
  fc.constantFrom(...words).map((type) => [{ type }]),
);

function check(convert: (body: JsonObject) => ConvertedRequest, body: JsonObject): void {
  const before = JSON.stringify(body);
  try {
    const { body: converted, dropped } = convert(body);
    expect(isJsonObject(JSON.parse(JSON.stringify(converted)))).toBe(true);
    for (const field of dropped) expect(field).toMatch(/^[\x21-\x7e]+$/);
  } catch (error) {
    if (!(error instanceof ConversionRefused)) throw error;
    expect(error.field).toMatch(/^[a-z_]+(\.[a-z_0-9]+)*$/);
  }
  // The caller's body is read, never written.
  expect(JSON.stringify(body)).toBe(before);
}

/** A copy of `value` with what lies at the end of the way (an index at each level) replaced. */
function replaced(body: JsonObject, way: readonly number[], value: Json): JsonObject {
  const copy = wire(body);
  let at: JsonObject | Json[] = copy;
  for (const [index, step] of way.entries()) {
    const keys = Object.keys(at);
    const key = keys[step % keys.length];
    if (key === undefined) break;
    const next = (at as JsonObject)[key];
    if (index === way.length - 1 || typeof next !== "object" || next === null || Object.keys(next).length === 0) {
      (at as Record<string, Json>)[key] = value;
      break;
    }
    at = next as JsonObject;
  }
  return copy;
}

function wire(body: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(body)) as JsonObject;
}
