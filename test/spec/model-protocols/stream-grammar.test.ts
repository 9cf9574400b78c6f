import { describe, expect, it } from "vitest";
import {
  assertChatStream,
  assertMessagesStream,
  collectChatStream,
  collectMessagesStream,
} from "../../harness/stream-grammar.ts";
import { bytes, DONE, data, message } from "./answer-streams.ts";

const START = message("message_start", {
  message: {
    id: "m",
    type: "message",
    role: "assistant",
    content: [],
    model: "x",
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 0 },
  },
});
const open = (index: number, block: object) => message("content_block_start", { index, content_block: block });
const text = open(0, { type: "text", text: "" });
const piece = message("content_block_delta", { index: 0, delta: { type: "text_delta", text: "a" } });
const close = message("content_block_stop", { index: 0 });
const last = message("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } });
const END = last + message("message_stop");
const tool = (index: number, id: string) =>
  open(index, { type: "tool_use", id, name: "f", input: {} }) + message("content_block_stop", { index });

describe("the judge of Messages streams", () => {
  it("takes a good stream, with pings, comments, CRLF or as bytes, and an error as its end", () => {
    const good = `${message("ping")}${START}: c\n\n${text}${message("ping")}${piece}${close}${END}`;
    expect(collectMessagesStream(good)).toMatchObject({
      content: [{ type: "text", text: "a" }],
      stopReason: "end_turn",
      error: undefined,
    });
    assertMessagesStream(good.replaceAll("\n", "\r\n"));
    assertMessagesStream(bytes(good));
    const broken = START + text + piece + message("error", { error: { type: "api_error", message: "m" } });
    expect(collectMessagesStream(broken)).toMatchObject({ error: { type: "api_error" }, stopReason: null });
  });

  it.each([
    ["no end", START + text + piece + close],
    ["no start", text + piece + close + END],
    ["two starts", START + START + END],
    ["an event after the end", START + END + message("ping")],
    ["an event after an error", START + message("error", { error: { type: "api_error", message: "m" } }) + END],
    ["message_stop without message_delta", START + message("message_stop")],
    ["two message_deltas", START + last + END],
    ["a name that is not the type", (START + END).replace("event: message_stop", "event: message_end")],
    ["an unknown event", START + message("surprise") + END],
    ["an unknown block", START + open(0, { type: "video" }) + close + END],
    ["an unknown reason", (START + END).replace("end_turn", "stop")],
    ["two open blocks", START + text + open(1, { type: "text", text: "" }) + close + END],
    ["an open block at the end", START + text + piece + END],
    ["a jump in the indexes", START + (text + piece + close).replaceAll('"index":0', '"index":1') + END],
    ["a delta without a block", START + piece + END],
    ["a delta for another block", START + text + piece.replace('"index":0', '"index":1') + close + END],
    [
      "a delta that does not fit its block",
      START + open(0, { type: "thinking", thinking: "", signature: "" }) + piece + close + END,
    ],
    [
      "a delta after the signature",
      START +
        open(0, { type: "thinking", thinking: "", signature: "" }) +
        message("content_block_delta", { index: 0, delta: { type: "signature_delta", signature: "s" } }) +
        message("content_block_delta", { index: 0, delta: { type: "thinking_delta", thinking: "t" } }) +
        close +
        END,
    ],
    ["an empty text block", START + text + close + END],
    ["a tool id that breaks the pattern", START + tool(0, "a b") + END],
    ["two tools with one id", START + tool(0, "a") + tool(1, "a") + END],
    ["a start without usage", START.replace('"usage":{"input_tokens":1,"output_tokens":0}', '"usage":{}') + END],
    ["a negative count", (START + END).replace('"output_tokens":1', '"output_tokens":-1')],
    ["JSON that is none", `${START}event: ping\ndata: {\n\n${END}`],
    ["a comment inside an event", (START + END).replace("event: message_stop\n", "event: message_stop\n: c\n")],
    ["a cut last event", (START + END).slice(0, -1)],
    ["a line that is no field", `${START}hello\n\n${END}`],
  ])("refuses %s", (_title, stream) => {
    expect(() => assertMessagesStream(stream)).toThrow();
    // The stream is wrong in that one way only.
    assertMessagesStream(START + text + piece + close + END);
  });
});

const chunk = (choices: readonly object[], rest: object = {}) =>
  data({ id: "c", object: "chat.completion.chunk", created: 1, model: "x", choices, ...rest });
const choice = (delta: object, finish: string | null = null) => ({ index: 0, delta, finish_reason: finish });
const role = chunk([choice({ role: "assistant", content: "" })]);
const word = chunk([choice({ content: "a" })]);
const finish = chunk([choice({}, "stop")]);
const calls = (...given: readonly object[]) => chunk([choice({ tool_calls: given })]);
const begin = (index: number, id: string) => ({ index, id, type: "function", function: { name: "f", arguments: "" } });
const CHAT_ERROR = data({ error: { message: "m", type: "server_error", param: null, code: null } });

describe("the judge of Chat Completions streams", () => {
  it("takes a good stream, with comments, and an error as its end", () => {
    const called = calls(begin(0, "t")) + calls({ index: 0, function: { arguments: "{}" } });
    const good = `: hi\n\n${role}${word}${called}${finish}${DONE}`;
    expect(collectChatStream(good)).toMatchObject({
      content: "a",
      toolCalls: [{ id: "t", name: "f", arguments: "{}" }],
      finishReason: "stop",
    });
    expect(collectChatStream(role + word + CHAT_ERROR)).toMatchObject({ error: { type: "server_error" }, finishReason: null });
    assertChatStream(CHAT_ERROR);
  });

  it.each([
    ["no end", role + finish],
    ["[DONE] without a finish", role + DONE],
    ["something after [DONE]", role + finish + DONE + word],
    ["[DONE] after an error", role + CHAT_ERROR + DONE],
    ["no role first", word + finish + DONE],
    ["a second role", role + role + finish + DONE],
    ["content after the finish", role + finish + word + DONE],
    ["two finishes", role + finish + finish + DONE],
    ["an unknown finish", role + finish.replace('"stop"', '"end_turn"') + DONE],
    ["another id", role + finish.replace('"id":"c"', '"id":"d"') + DONE],
    ["another object", (role + finish).replaceAll(".chunk", "") + DONE],
    ["an event name", `event: message\n${role}${finish}${DONE}`],
    ["a second choice", role + chunk([choice({}), choice({})]) + finish + DONE],
    ["usage in some chunks only", role + finish + chunk([], { usage: { prompt_tokens: 1 } }) + DONE],
    ["usage before the finish", chunk([choice({ role: "assistant" })], { usage: null }) + chunk([], { usage: {} }) + DONE],
    [
      "a total that is no sum",
      chunk([choice({ role: "assistant" }, "stop")], { usage: null }) +
        chunk([], { usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 3 } }) +
        DONE,
    ],
    ["a tool call that begins without an id", role + calls({ index: 0, function: { name: "f", arguments: "" } }) + finish + DONE],
    ["a tool call that begins at 1", role + calls(begin(1, "t")) + finish + DONE],
    ["a tool call whose id changes", role + calls(begin(0, "t")) + calls({ ...begin(0, "u") }) + finish + DONE],
    ["two tool calls with one id", role + calls(begin(0, "t"), begin(1, "t")) + finish + DONE],
    ["arguments that are no text", role + calls({ ...begin(0, "t"), function: { name: "f", arguments: {} } }) + finish + DONE],
    ["an error without its fields", role + data({ error: { message: "m" } })],
    ["JSON that is none", `${role}data: {\n\n${finish}${DONE}`],
  ])("refuses %s", (_title, stream) => {
    expect(() => assertChatStream(stream)).toThrow();
    assertChatStream(role + word + finish + DONE);
  });
});
