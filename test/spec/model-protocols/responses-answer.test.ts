import {
  type ModelEvent,
  readResponse,
  readResponsesStream,
  refusedPart,
  stopAt,
  type JsonObject,
} from "@portico/core/model-protocols";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { writeResponse, writeResponseEvents } from "../../harness/echo-responses.ts";
import type { EchoTurn } from "../../harness/echo-turn.ts";

const OWNER = "0123abcd";
const line = (event: object) => `data: ${JSON.stringify(event)}\n\n`;

function readStream(text: string, cut = text.length): readonly ModelEvent[] {
  const reader = readResponsesStream(OWNER);
  const bytes = Buffer.from(text);
  const events: ModelEvent[] = [];
  for (let at = 0; at < bytes.length; at += cut) events.push(...reader.push(bytes.subarray(at, at + cut)));
  return [...events, ...reader.end()];
}
const read = (...events: readonly object[]) => readStream(events.map(line).join(""));

/** Neighbouring pieces of one kind as one event, so that a stream and a whole answer are equal. */
function joined(events: readonly ModelEvent[]): readonly ModelEvent[] {
  const all: ModelEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if (last?.type === event.type && (event.type === "text" || event.type === "thinking"))
      all[all.length - 1] = { ...event, text: (last as typeof event).text + event.text };
    else if (last?.type === "tool-arguments" && event.type === "tool-arguments" && last.call === event.call)
      all[all.length - 1] = { ...event, json: last.json + event.json };
    else all.push(event);
  }
  return all;
}

const said = fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" });
const anyTurn: fc.Arbitrary<EchoTurn> = fc
  .record({
    thinking: fc.option(said, { nil: undefined }),
    text: fc.oneof(said, fc.constant("")),
    calls: fc.array(fc.record({ name: fc.constant("look"), input: fc.dictionary(said, said, { maxKeys: 2 }) }), { maxLength: 3 }),
    isCut: fc.boolean(),
  })
  .map(({ thinking, text, calls, isCut }) => ({
    model: "m",
    text,
    ...(thinking !== undefined && { thinking }),
    calls: calls.map((call, index) => ({ id: `call_${index}`, ...call })),
    finish: isCut ? "length" : calls.length > 0 ? "tool" : "end",
    inputTokens: 3,
    outputTokens: 4,
  }));

const CREATED = { type: "response.created", response: { id: "resp_1", model: "m", status: "in_progress", output: [] } };
const COMPLETED = { type: "response.completed", response: { id: "resp_1", status: "completed", output: [] } };
const FINISH = { type: "finish", reason: "end" };
const message = { type: "message", id: "msg_1", role: "assistant" };
const delta = (text: string, more: object = {}) => ({
  type: "response.output_text.delta",
  output_index: 0,
  content_index: 0,
  item_id: "msg_1",
  delta: text,
  ...more,
});
const added = (item: object, output_index = 0) => ({ type: "response.output_item.added", output_index, item });
const done = (item: object, output_index = 0) => ({ type: "response.output_item.done", output_index, item });
const contentOf = (events: readonly ModelEvent[]) => joined(events).filter(({ type }) => type !== "start" && type !== "usage");

describe("an answer of the Responses API", () => {
  it("says the same as a stream, cut anywhere, and as a whole", () => {
    fc.assert(
      fc.property(anyTurn, fc.integer({ min: 1, max: 40 }), (turn, cut) => {
        const whole = joined(readResponse(writeResponse(turn, "1") as JsonObject, OWNER));
        expect(joined(readStream(writeResponseEvents(turn, "1").join(""), cut))).toEqual(whole);
        expect(whole.at(-1)).toEqual({ type: "finish", reason: turn.finish });
        const text = whole.flatMap((event) => (event.type === "text" ? [event.text] : [])).join("");
        expect(text).toBe(turn.text);
        expect(whole).toContainEqual({
          type: "usage",
          usage: { input: 3, cacheRead: 0, cacheWrite: 0, output: 4, reasoning: 0 },
        });
      }),
    );
  });

  it("is broken if it ends without its last event, wherever it is cut", () => {
    const turn: EchoTurn = { model: "m", thinking: "t", text: "a b", calls: [], finish: "end", inputTokens: 1, outputTokens: 1 };
    const events = writeResponseEvents(turn, "1");
    for (let most = 0; most < events.length; most += 1)
      for (const end of ["", "data: [DONE]\n\n"])
        expect(readStream(events.slice(0, most).join("") + end).at(-1)).toMatchObject({
          type: "error",
          error: { kind: "upstream" },
        });
  });

  it("signs its reasoning with the id, the encrypted content, and the message that follows", () => {
    const reasoning = {
      type: "reasoning",
      id: "rs_1",
      summary: [
        { type: "summary_text", text: "one" },
        { type: "summary_text", text: "two" },
      ],
    };
    const output = [
      { ...reasoning, encrypted_content: "gAAA" },
      { ...message, phase: "final_answer", content: [{ type: "output_text", text: "Hi" }] },
    ];
    const signature = `responses:${OWNER}:{"id":"rs_1","encrypted":"gAAA","message":{"id":"msg_1","phase":"final_answer"}}`;
    expect(contentOf(readResponse({ model: "m", status: "completed", output }, OWNER))).toEqual([
      { type: "thinking", text: "one\n\ntwo" },
      { type: "thinking-signature", signature },
      { type: "text", text: "Hi" },
      FINISH,
    ]);
  });

  it("keeps reasoning without a summary as redacted thinking", () => {
    const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" };
    const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: "{}" };
    expect(
      contentOf(
        read(CREATED, added({ ...item, encrypted_content: undefined }), done(item), added(call, 1), done(call, 1), COMPLETED),
      ),
    ).toEqual([
      { type: "redacted-thinking", data: `responses:${OWNER}:{"id":"rs_1","encrypted":"gAAA"}` },
      { type: "tool-start", call: 0, id: "call_1", name: "look" },
      { type: "tool-arguments", call: 0, json: "{}" },
      { type: "tool-end", call: 0 },
      { type: "finish", reason: "tool" },
    ]);
  });

  // BerriAI/litellm#30072, vercel/ai#18548
  it("is read by the index of its items, because some servers change their ids with each event", () => {
    const item = { ...message, content: [{ type: "output_text", text: "Hello" }] };
    const events = [
      added({ ...message, id: "a" }),
      delta("Hel", { item_id: "b" }),
      delta("lo", { item_id: "c" }),
      { type: "response.output_text.done", output_index: 0, content_index: 0, item_id: "d", text: "Hello" },
      done({ ...item, id: "e" }),
    ];
    const last = { ...COMPLETED, response: { status: "completed", output: [{ ...item, id: "f" }] } };
    expect(contentOf(read(CREATED, ...events, last))).toEqual([{ type: "text", text: "Hello" }, FINISH]);
  });

  it("is complete without deltas, if each item or the last event has the text", () => {
    const item = {
      ...message,
      content: [
        { type: "output_text", text: "Hello" },
        { type: "refusal", refusal: "No" },
      ],
    };
    const said = [
      { type: "text", text: "Hello" },
      { type: "refusal", text: "No" },
      { type: "finish", reason: "refusal" },
    ];
    expect(contentOf(read(CREATED, done(item), COMPLETED))).toEqual(said);
    expect(contentOf(read(CREATED, { ...COMPLETED, response: { status: "completed", output: [item] } }))).toEqual(said);
    // No item is announced.
    expect(contentOf(read(CREATED, delta("Hel"), delta("lo"), COMPLETED))).toEqual([{ type: "text", text: "Hello" }, FINISH]);
  });

  // lidge-jun/opencodex#4652
  it("has the arguments of a call once, also if only their end says them, or a call's end names it", () => {
    const args = { output_index: 0, item_id: "fc_1" };
    const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "look", arguments: '{"a":1}' };
    const begun = { ...call, arguments: "" };
    const end = { type: "response.function_call_arguments.done", ...args, arguments: '{"a":1}' };
    const piece = { type: "response.function_call_arguments.delta", ...args, delta: '{"a":1}' };
    const events = [
      { type: "tool-start", call: 0, id: "call_1", name: "look" },
      { type: "tool-arguments", call: 0, json: '{"a":1}' },
      { type: "tool-end", call: 0 },
      { type: "finish", reason: "tool" },
    ];
    expect(contentOf(read(CREATED, added(begun), piece, end, done(call), COMPLETED))).toEqual(events);
    expect(contentOf(read(CREATED, added(begun), end, done(call), COMPLETED))).toEqual(events);
    expect(contentOf(read(CREATED, added(begun), done(call), COMPLETED))).toEqual(events);
    expect(contentOf(read(CREATED, added({ ...begun, name: "" }), piece, end, done(call), COMPLETED))).toEqual(events);
    expect(read(CREATED, added({ ...begun, name: "" }), piece, COMPLETED).at(-1)).toMatchObject({ type: "error" });
  });

  it.each([
    [{ reason: "max_output_tokens" }, "length"],
    // langchain4j/langchain4j#6182
    [{ reason: "content_filter" }, "refusal"],
    [null, "length"],
  ])("that is incomplete says why: %j", (incomplete_details, reason) => {
    const response = { status: "incomplete", incomplete_details, output: [], usage: { input_tokens: 9, output_tokens: 16 } };
    const events = read(CREATED, { type: "response.incomplete", response });
    expect(events.slice(1)).toEqual([
      { type: "usage", usage: { input: 9, output: 16 } },
      { type: "finish", reason },
    ]);
  });

  it.each([
    [{ type: "error", code: "rate_limit_exceeded", message: "Slow down", param: null }, "rate-limit"],
    [{ type: "error", error: { type: "insufficient_quota", code: "insufficient_quota", message: "No money" } }, "billing"],
    [{ type: "response.failed", response: { status: "failed", error: { code: "server_error", message: "Oh" } } }, "upstream"],
    [
      { type: "response.failed", response: { status: "failed", error: { code: "invalid_prompt", message: "Oh" } } },
      "invalid-request",
    ],
    [
      { type: "response.failed", response: { status: "failed", error: { code: "image_too_large", message: "Oh" } } },
      "invalid-request",
    ],
    [
      { type: "response.failed", response: { status: "failed", error: { code: "server_is_overloaded", message: "Oh" } } },
      "overloaded",
    ],
    [{ type: "response.failed", response: { status: "failed", error: null } }, "upstream"],
  ])("that fails in its middle is an error: %j", (event, kind) => {
    const events = read(CREATED, delta("Hel"), event, delta("lo"), COMPLETED);
    expect(events.at(-1)).toMatchObject({ type: "error", error: { kind } });
  });

  // mnfst/llm-gateway#2072
  it("is broken if a second answer begins in its stream", () => {
    expect(read(CREATED, delta("a"), CREATED, delta("a"), COMPLETED).at(-1)).toMatchObject({ type: "error" });
  });

  it("ignores events and items that it does not know", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed" };
    const events = [
      { type: "response.in_progress", response: {} },
      { type: "keepalive" },
      added(search, 1),
      { type: "response.web_search_call.searching", output_index: 1 },
      done(search, 1),
      { type: "response.output_text.annotation.added", output_index: 0 },
    ];
    expect(contentOf(read(CREATED, ...events, delta("Hi"), COMPLETED))).toEqual([{ type: "text", text: "Hi" }, FINISH]);
  });

  it("does not grow without limit: items, calls, and events that are too large", () => {
    const many = Array.from({ length: 5_000 }, (_, index) => added({ type: "message" }, index));
    expect(read(CREATED, ...many).at(-1)).toMatchObject({
      type: "error",
      error: { message: expect.stringContaining("4096 items") },
    });
    const calls = Array.from({ length: 1_001 }, (_, index) =>
      added({ type: "function_call", name: "a", call_id: `${index}` }, index),
    );
    expect(read(CREATED, ...calls).at(-1)).toMatchObject({ type: "error" });
  });

  it("is an error as a whole without output, or with an error", () => {
    expect(readResponse({ status: "completed" }, OWNER).at(-1)).toMatchObject({ type: "error" });
    expect(readResponse({ status: "in_progress", output: [] }, OWNER).at(-1)).toMatchObject({ type: "error" });
    expect(readResponse({ error: { code: "rate_limit_exceeded", message: "a" } }, OWNER).at(-1)).toMatchObject({
      error: { kind: "rate-limit" },
    });
  });
});

describe("stop sequences that the reader applies", () => {
  const end: ModelEvent = { type: "finish", reason: "end" };
  const usage: ModelEvent = { type: "usage", usage: { output: 3 } };

  it("end the text before the one that is complete first, wherever the stream is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[ab]{1,3}$/), { minLength: 1, maxLength: 3 }),
        fc.array(fc.stringMatching(/^[ab]{0,4}$/), { maxLength: 8 }),
        (sequences, pieces) => {
          const whole = pieces.join("");
          const found = sequences
            .map((each) => ({ at: whole.indexOf(each), end: whole.indexOf(each) + each.length }))
            .filter(({ at }) => at !== -1)
            .toSorted((a, b) => a.end - b.end || a.at - b.at);
          const stop = stopAt(sequences);
          const events = [...pieces.map((text): ModelEvent => ({ type: "text", text })), usage, end].flatMap((each) =>
            stop([each]),
          );
          const text = events.flatMap((event) => (event.type === "text" ? [event.text] : [])).join("");
          expect(text).toBe(whole.slice(0, found[0]?.at));
          expect(events.at(-1)).toMatchObject({ reason: found.length === 0 ? "end" : "stop-sequence" });
          expect(events).toContainEqual(usage);
        },
      ),
    );
  });
});

describe("what an error of the vendor refuses", () => {
  const error = (message: string, more: object = {}) => refusedPart({ kind: "invalid-request", message, ...more });

  it.each([
    ["The encrypted content gAAA...DQ== could not be verified.", { code: "invalid_encrypted_content" }, "encrypted-reasoning"],
    ["reasoning `encrypted_content` was not issued to this caller", {}, "encrypted-reasoning"],
    [
      "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
      { param: "input" },
      "encrypted-reasoning",
    ],
    ["Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", {}, "encrypted-reasoning"],
    ["Encrypted content is not supported with this model.", { param: "include" }, "include"],
    ["Your organization must be verified", { param: "reasoning.summary", code: "unsupported_value" }, "reasoning.summary"],
    ["Unsupported parameter: 'reasoning.effort' is not supported with this model.", { param: "reasoning.effort" }, "reasoning"],
    ["Unsupported parameter: 'temperature' is not supported with this model.", { code: "unsupported_parameter" }, "temperature"],
    ["Unsupported parameter: max_output_tokens", {}, "max_output_tokens"],
    ["Invalid 'temperature': decimal above maximum value.", { param: "temperature", code: "decimal_above_max_value" }, undefined],
    ["Unsupported parameter: 'tools'", { param: "tools" }, undefined],
    ["Your input exceeds the context window of this model.", { code: "context_length_exceeded" }, undefined],
  ])("%s", (message, more, part) => {
    expect(error(message, more)).toBe(part);
  });
});
