import { describe, expect, it } from "vitest";
import { AnswerFailed, writeChatCompletion, writeMessage } from "../../../core/src/model-protocols/write-answer.ts";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import type { ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import { readChatCompletion, readMessage } from "../../../core/src/model-protocols/read-answer.ts";

const MESSAGE = { id: "msg_1", model: "asked" };
const COMPLETION = { id: "chatcmpl-1", model: "asked", created: 1700000000 };
const completion = (message: object, finish: string | null = "stop", rest: object = {}) =>
  ({
    id: "c",
    object: "chat.completion",
    model: "up",
    choices: [{ index: 0, message, finish_reason: finish }],
    ...rest,
  }) as unknown as JsonObject;
const message = (content: readonly object[], stop: string | null = "end_turn", rest: object = {}) =>
  ({ id: "m", type: "message", model: "up", content, stop_reason: stop, stop_sequence: null, ...rest }) as unknown as JsonObject;
const call = (id: string, args: unknown) => ({ id, type: "function", function: { name: "f", arguments: args } });

describe("a whole answer of Chat Completions as a message", () => {
  const convert = (body: JsonObject) => writeMessage(readChatCompletion(body), MESSAGE);

  it("keeps text, and writes unreported usage as the zeros that the type requires", () => {
    expect(convert(completion({ role: "assistant", content: "hi" }))).toEqual({
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "hi" }],
      model: "asked",
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 0, output_tokens: 0 },
    });
  });

  it("subtracts what a cache gave from the prompt", () => {
    const usage = { prompt_tokens: 10, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 7 } };
    expect(convert(completion({ content: "a" }, "stop", { usage })).usage).toEqual({
      input_tokens: 3,
      cache_read_input_tokens: 7,
      output_tokens: 4,
    });
  });

  it.each<readonly [string, object, readonly object[]]>([
    [
      "reasoning before text",
      { content: "a", reasoning_content: "hm" },
      [
        { type: "thinking", thinking: "hm", signature: "" },
        { type: "text", text: "a" },
      ],
    ],
    [
      "signatures beside their own thinking",
      {
        content: "a",
        reasoning: "onetwo",
        reasoning_details: [
          { type: "reasoning.text", text: "one", signature: "s1" },
          { type: "reasoning.text", text: "two", signature: "s2" },
          { type: "reasoning.encrypted", data: "enc" },
        ],
      },
      [
        { type: "thinking", thinking: "one", signature: "s1" },
        { type: "thinking", thinking: "two", signature: "s2" },
        { type: "redacted_thinking", data: "enc" },
        { type: "text", text: "a" },
      ],
    ],
    [
      "thinking that nobody signed apart from thinking that somebody did",
      {
        content: null,
        reasoning_details: [
          { type: "reasoning.text", text: "one" },
          { type: "reasoning.text", text: "two", signature: "s2" },
        ],
      },
      [
        { type: "thinking", thinking: "one", signature: "" },
        { type: "thinking", thinking: "two", signature: "s2" },
      ],
    ],
    [
      "a signature for reasoning that stands elsewhere",
      { content: null, reasoning_content: "hm", reasoning_details: [{ type: "reasoning.text", signature: "s" }] },
      [{ type: "thinking", thinking: "hm", signature: "s" }],
    ],
    ["a refusal as text", { content: null, refusal: "no" }, [{ type: "text", text: "no" }]],
    ["no content at all", { content: "" }, []],
    [
      "tool calls, their arguments as text, as an object, as nothing or null",
      {
        content: "so",
        tool_calls: [
          call("a", '{"x":1}'),
          call("b", { y: 2 }),
          call("c", ""),
          call("d", "null"),
          { id: "e", type: "function", function: { name: "f" } },
        ],
      },
      [
        { type: "text", text: "so" },
        { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
        { type: "tool_use", id: "b", name: "f", input: { y: 2 } },
        { type: "tool_use", id: "c", name: "f", input: {} },
        { type: "tool_use", id: "d", name: "f", input: {} },
        { type: "tool_use", id: "e", name: "f", input: {} },
      ],
    ],
    [
      "the older function_call",
      { content: null, function_call: { name: "f", arguments: "{}" } },
      [{ type: "tool_use", id: "call_msg_1_0", name: "f", input: {} }],
    ],
  ])("%s", (_title, given, expected) => {
    expect(convert(completion(given)).content).toEqual(expected);
  });

  it("says tool_use after tool calls and refusal after a refusal, also if the upstream says otherwise", () => {
    expect(convert(completion({ tool_calls: [call("a", "{}")] }, "stop")).stop_reason).toBe("tool_use");
    expect(convert(completion({ refusal: "no" }, "stop")).stop_reason).toBe("refusal");
    expect(convert(completion({ content: "a" }, null)).stop_reason).toBe("end_turn");
  });

  it.each([["{broken"], ["[1]"], ['"text"'], ["7"]])("fails on arguments that are not an object: %s", (given) => {
    const attempt = () => convert(completion({ tool_calls: [call("a", given)] }, "tool_calls"));
    expect(attempt).toThrow(AnswerFailed);
    expect(attempt).toThrow('The provider\'s arguments for the tool "f" are not a JSON object.');
  });

  it("gives the last call an empty input where the answer ran out of room, and no other", () => {
    const cut = convert(completion({ tool_calls: [call("a", "{}"), call("b", '{"x":')] }, "length"));
    expect(cut).toMatchObject({ content: [{ input: {} }, { id: "b", input: {} }], stop_reason: "max_tokens" });
    expect(() => convert(completion({ tool_calls: [call("a", '{"x":'), call("b", "{}")] }, "length"))).toThrow(AnswerFailed);
  });

  it.each<readonly [string, object, string]>([
    ["no choices", {}, "The provider's answer has no message."],
    ["a choice without a message", { choices: [{ index: 0 }] }, "The provider's answer has no message."],
    ["an error in an answer of status 200", { error: { message: "sorry", type: "server_error" } }, "sorry"],
    [
      "a reason that says error",
      { choices: [{ message: { content: "a" }, finish_reason: "error" }] },
      "The provider ended its answer early.",
    ],
  ])("fails on %s", (_title, body, expected) => {
    expect(() => convert(body as JsonObject)).toThrow(
      new AnswerFailed({ kind: "upstream", message: expected, ...(expected !== "sorry" && { isUnreadable: true }) }),
    );
  });
});

describe("a whole message as an answer of Chat Completions", () => {
  const convert = (body: JsonObject) => writeChatCompletion(readMessage(body), COMPLETION);

  it("keeps text, and writes no usage if none was reported (4.1: missing usage is not zero consumption)", () => {
    expect(convert(message([{ type: "text", text: "hi" }]))).toEqual({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1700000000,
      model: "asked",
      choices: [
        { index: 0, message: { role: "assistant", content: "hi", refusal: null }, logprobs: null, finish_reason: "stop" },
      ],
    });
  });

  it("adds what a cache gave and took to the prompt", () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: 7, cache_creation_input_tokens: 5, output_tokens: 4 };
    expect(convert(message([], "end_turn", { usage })).usage).toEqual({
      prompt_tokens: 15,
      completion_tokens: 4,
      total_tokens: 19,
      prompt_tokens_details: { cached_tokens: 7, cache_write_tokens: 5 },
    });
  });

  it.each<readonly [string, readonly object[], object]>([
    [
      "thinking with its signature",
      [
        { type: "thinking", thinking: "hm", signature: "s" },
        { type: "redacted_thinking", data: "r" },
        { type: "text", text: "a" },
      ],
      {
        content: "a",
        reasoning_content: "hm",
        reasoning_details: [
          { type: "reasoning.text", text: "hm", signature: "s" },
          { type: "reasoning.encrypted", data: "r" },
        ],
      },
    ],
    [
      "thinking that nobody signed",
      [
        { type: "thinking", thinking: "hm", signature: "" },
        { type: "text", text: "a" },
      ],
      { content: "a", reasoning_content: "hm" },
    ],
    [
      "several texts as one",
      [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      { content: "ab" },
    ],
    ["no content", [], { content: "" }],
    [
      "tool use, with and without input",
      [
        { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
        { type: "tool_use", id: "b", name: "g", input: {} },
      ],
      {
        content: null,
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
          { id: "b", type: "function", function: { name: "g", arguments: "{}" } },
        ],
      },
    ],
    [
      "a server's own tools not at all",
      [
        { type: "server_tool_use", id: "s", name: "web_search", input: {} },
        { type: "text", text: "a" },
      ],
      { content: "a" },
    ],
  ])("%s", (_title, content, expected) => {
    const [choice] = convert(message(content)).choices as readonly [{ message: object }];
    expect(choice.message).toEqual({ role: "assistant", refusal: null, ...expected });
  });

  it("fails on an answer without content, and on an error", () => {
    expect(() => convert({ type: "message" })).toThrow("The provider's answer has no content.");
    const failed = () => convert({ type: "error", error: { type: "overloaded_error", message: "busy" } });
    expect(failed).toThrow(expect.objectContaining({ error: { kind: "overloaded", message: "busy" } }));
  });
});

describe("what both writers of whole answers share", () => {
  it("an answer without an end is an error", () => {
    const events: readonly ModelEvent[] = [{ type: "start" }, { type: "text", text: "a" }];
    expect(() => writeMessage(events, MESSAGE)).toThrow(AnswerFailed);
    expect(() => writeChatCompletion(events, COMPLETION)).toThrow(AnswerFailed);
  });

  it("a nested answer that cannot be written becomes an error instead of an exception", () => {
    const nested = JSON.parse(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`) as object;
    const events = readMessage(message([{ type: "tool_use", id: "a", name: "f", input: nested }]));
    expect(events.at(-1)).toEqual({
      type: "error",
      error: { kind: "upstream", message: "The provider's answer is nested too deeply.", isUnreadable: true },
    });
  });
});
