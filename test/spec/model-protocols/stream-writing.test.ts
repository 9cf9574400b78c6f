import { describe, expect, it } from "vitest";
import type { ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import { writeChatStream } from "../../../core/src/model-protocols/write-chat-stream.ts";
import { writeMessagesStream } from "../../../core/src/model-protocols/write-messages-stream.ts";
import {
  assertChatStream,
  assertMessagesStream,
  collectChatStream,
  collectMessagesStream,
} from "../../harness/stream-grammar.ts";
import { chatText, FINISHED, messagesText } from "./answer-streams.ts";

const START: ModelEvent = { type: "start" };
const text = (value: string): ModelEvent => ({ type: "text", text: value });
const start = (call: number, id: string, name: string): ModelEvent => ({ type: "tool-start", call, id, name });
const args = (call: number, json: string): ModelEvent => ({ type: "tool-arguments", call, json });
const end = (call: number): ModelEvent => ({ type: "tool-end", call });
const TOOL: ModelEvent = { type: "finish", reason: "tool" };
const BROKEN: ModelEvent = { type: "error", error: { kind: "overloaded", message: "busy" } };

const message = (...events: readonly ModelEvent[]) => collectMessagesStream(messagesText(events));
const completion = (...events: readonly ModelEvent[]) => collectChatStream(chatText(events));

describe("writing Messages streams", () => {
  it("writes message_start with the first start event, and nothing for a later one", () => {
    const writer = writeMessagesStream({ id: "msg_1", model: "m" });
    expect(writer.write([START])).toMatch(/^event: message_start\n.*\n\n$/);
    expect(writer.write([{ type: "start", model: "other", usage: { input: 4 } }])).toBe("");
    const rest = writer.write([text("a"), FINISHED]);
    expect(rest).toContain('"input_tokens":4');
    expect(rest).not.toContain("other");
  });

  it("gives an answer without content as a message without content", () => {
    expect(message(START, FINISHED)).toMatchObject({ content: [], stopReason: "end_turn", stopSequence: null });
    expect(message(START, text(""), FINISHED).content).toEqual([]);
  });

  it("writes unreported usage as the zeros that the type requires, and no other count", () => {
    expect(message(START, FINISHED).usage).toEqual({ input_tokens: 0, output_tokens: 0 });
  });

  it("writes the totals into message_delta", () => {
    const usage = { input: 5, cacheRead: 2, cacheWrite: 1, output: 9, reasoning: 4 };
    expect(message(START, { type: "usage", usage }, FINISHED).usage).toEqual({
      input_tokens: 5,
      cache_read_input_tokens: 2,
      cache_creation_input_tokens: 1,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    });
  });

  it("keeps what interleaves with an unfinished call back, in order, and loses nothing", () => {
    const { content } = message(
      START,
      start(0, "a", "f"),
      args(0, '{"x":'),
      text("be"),
      start(1, "b", "g"),
      args(1, '{"y":'),
      args(0, "1}"),
      text("after"),
      args(1, "2}"),
      end(1),
      end(0),
      TOOL,
    );
    expect(content).toEqual([
      { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
      { type: "text", text: "be" },
      { type: "tool_use", id: "b", name: "g", input: { y: 2 } },
      { type: "text", text: "after" },
    ]);
  });

  it("writes a call on as soon as the one before it is complete", () => {
    const writer = writeMessagesStream({ id: "msg_1", model: "m" });
    writer.write([START, start(0, "a", "f"), args(0, "{}"), start(1, "b", "g")]);
    expect(writer.write([args(1, '{"y"')])).toBe("");
    expect(writer.write([end(0)])).toContain('"partial_json":"{\\"y\\""');
    expect(writer.write([args(1, ":2}")])).toContain('"partial_json":":2}"');
  });

  it("writes a signature as the last delta of its thinking, and begins another block after it", () => {
    const { content } = message(
      START,
      { type: "thinking", text: "a" },
      { type: "thinking-signature", signature: "s1" },
      { type: "thinking", text: "b" },
      { type: "thinking-signature", signature: "s2" },
      { type: "redacted-thinking", data: "r" },
      { type: "thinking-signature", signature: "s3" },
      FINISHED,
    );
    expect(content).toEqual([
      { type: "thinking", thinking: "a", signature: "s1" },
      { type: "thinking", thinking: "b", signature: "s2" },
      { type: "redacted_thinking", data: "r" },
      { type: "thinking", thinking: "", signature: "s3" },
    ]);
  });

  it("gives tool calls ids that the protocol takes, made of the answer's id where there was none, and never twice", () => {
    const { content } = message(
      START,
      start(0, "", "f"),
      end(0),
      start(1, "a b", "f"),
      end(1),
      start(2, "same", "f"),
      end(2),
      start(3, "same", "f"),
      end(3),
      TOOL,
    );
    expect(content.map((block) => block.id)).toEqual(["call_msg_1_0", expect.stringMatching(/^[\w-]+$/), "same", "call_msg_1_3"]);
  });

  it("ends with the error event and nothing after it", () => {
    const written = messagesText([START, text("a"), BROKEN, text("b"), FINISHED]);
    expect(
      written.endsWith('event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'),
    ).toBe(true);
    expect(collectMessagesStream(written).stopReason).toBeNull();
  });

  it("takes a ping between any two writes", () => {
    const writer = writeMessagesStream({ id: "msg_1", model: "m" });
    expect(writer.keepAlive).toBe('event: ping\ndata: {"type": "ping"}\n\n');
    const events = [START, text("a"), start(0, "a", "f"), text("b"), end(0), TOOL];
    assertMessagesStream(events.map((event) => writer.keepAlive + writer.write([event])).join(""));
  });
});

describe("writing Chat Completions streams", () => {
  const options = { id: "chatcmpl-1", model: "m", created: 1700000000, includeUsage: false };

  it("writes the role with the first start event, and nothing for a later one", () => {
    const writer = writeChatStream(options);
    expect(writer.write([START])).toContain('"delta":{"role":"assistant","content":""}');
    expect(writer.write([{ type: "start", model: "other" }])).toBe("");
    expect(writer.write([text("a"), FINISHED])).not.toContain("other");
  });

  it("puts every kind of content where clients look for it", () => {
    const collected = completion(
      START,
      { type: "thinking", text: "h" },
      { type: "thinking", text: "m" },
      { type: "thinking-signature", signature: "sig" },
      { type: "redacted-thinking", data: "enc" },
      text("a"),
      { type: "refusal", text: "no" },
      start(0, "a", "f"),
      args(0, '{"x":1}'),
      end(0),
      start(1, "b", "g"),
      end(1),
      TOOL,
    );
    expect(collected).toMatchObject({
      reasoning: "hm",
      reasoningDetails: [
        { type: "reasoning.text", text: "hm", signature: "sig" },
        { type: "reasoning.encrypted", data: "enc" },
      ],
      content: "a",
      refusal: "no",
      toolCalls: [
        { id: "a", name: "f", arguments: '{"x":1}' },
        { id: "b", name: "g", arguments: "{}" },
      ],
      finishReason: "tool_calls",
      usage: undefined,
    });
  });

  it("a signature carries the text of its own thinking, not of what came before other content", () => {
    const { reasoningDetails } = completion(
      START,
      { type: "thinking", text: "unsigned" },
      text("a"),
      { type: "thinking", text: "signed" },
      { type: "thinking-signature", signature: "s" },
      FINISHED,
    );
    expect(reasoningDetails).toEqual([{ type: "reasoning.text", text: "signed", signature: "s" }]);
  });

  it("lets interleaved calls interleave, each on its own index", () => {
    const { toolCalls } = completion(
      START,
      start(7, "a", "f"),
      args(7, "{"),
      start(3, "b", "g"),
      args(3, "[]"),
      args(7, "}"),
      end(3),
      end(7),
      args(7, "late"),
      TOOL,
    );
    expect(toolCalls).toEqual([
      { id: "a", name: "f", arguments: "{}" },
      { id: "b", name: "g", arguments: "[]" },
    ]);
  });

  it("writes usage only if the request asks for it: after the finish, with null in every other chunk", () => {
    const events: readonly ModelEvent[] = [START, text("a"), { type: "usage", usage: { input: 3, output: 2 } }, FINISHED];
    expect(chatText(events, false)).not.toContain("usage");
    const asked = chatText(events);
    expect(asked.match(/"usage":null/g)).toHaveLength(3);
    expect(collectChatStream(asked).usage).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
  });

  it("leaves out the chunk with the usage if no usage was reported (4.1: missing usage is not zero consumption)", () => {
    expect(collectChatStream(chatText([START, text("a"), FINISHED])).usage).toBeUndefined();
  });

  it("calls a refusal in words a stop, and one without words filtered", () => {
    expect(completion(START, { type: "refusal", text: "no" }, { type: "finish", reason: "refusal" }).finishReason).toBe("stop");
    expect(completion(START, { type: "finish", reason: "refusal" }).finishReason).toBe("content_filter");
  });

  it("ends with the error and without [DONE]", () => {
    const written = chatText([START, text("a"), BROKEN, FINISHED]);
    expect(
      written.endsWith('data: {"error":{"message":"busy","type":"server_error","param":null,"code":"overloaded"}}\n\n'),
    ).toBe(true);
    expect(written).not.toContain("[DONE]");
  });

  it("takes a comment between any two writes", () => {
    const writer = writeChatStream({ ...options, includeUsage: true });
    expect(writer.keepAlive).toBe(": keep-alive\n\n");
    const events = [
      START,
      text("a"),
      start(0, "a", "f"),
      text("b"),
      end(0),
      { type: "usage", usage: { input: 1, output: 1 } } as const,
      TOOL,
    ];
    assertChatStream(events.map((event) => writer.keepAlive + writer.write([event])).join(""));
  });
});
