import { describe, expect, it } from "vitest";
import { readChatStream, STREAM_EVENT_CHARACTERS } from "../../../core/src/model-protocols/read-answer.ts";
import type { ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import { bytes, CUT, chunk, DONE, data, FINISHED, readAll, readChat, said, toolChunk } from "./answer-streams.ts";

const text = (value: string): ModelEvent => ({ type: "text", text: value });
const thinking = (value: string): ModelEvent => ({ type: "thinking", text: value });
const start = (call: number, id: string, name: string): ModelEvent => ({ type: "tool-start", call, id, name });
const args = (call: number, json: string): ModelEvent => ({ type: "tool-arguments", call, json });
const end = (call: number): ModelEvent => ({ type: "tool-end", call });
const TOOL: ModelEvent = { type: "finish", reason: "tool" };
/** An error in the words of the provider. */
const told = (message: string): ModelEvent => ({ type: "error", error: { kind: "upstream", message } });
const failure = (message: string): ModelEvent => ({ type: "error", error: { kind: "upstream", message, isUnreadable: true } });

const role = chunk({ role: "assistant", content: "" });
const stop = chunk({}, "stop") + DONE;
const toolStop = chunk({}, "tool_calls") + DONE;

/** Title, stream, what it says. */
const TABLE: readonly (readonly [string, string, readonly ModelEvent[]])[] = [
  ["text in pieces", role + chunk({ content: "Hel" }) + chunk({ content: "lo" }) + stop, [text("Hello"), FINISHED]],
  ["a finish reason with content in the same chunk", chunk({ content: "all" }, "stop") + DONE, [text("all"), FINISHED]],
  [
    "content after a finish reason",
    chunk({ content: "a" }, "stop") + chunk({ content: "b" }, "stop") + DONE,
    [text("ab"), FINISHED],
  ],
  [
    "empty choices first",
    data({ choices: [], prompt_filter_results: [] }) + chunk({ content: "a" }) + stop,
    [text("a"), FINISHED],
  ],
  [
    "null content, null tool calls",
    chunk({ content: null, tool_calls: null, refusal: null }) + chunk({ content: "a" }) + stop,
    [text("a"), FINISHED],
  ],
  [
    "a message in place of deltas",
    data({ choices: [{ index: 0, message: { role: "assistant", content: "all" }, finish_reason: "stop" }] }) + DONE,
    [text("all"), FINISHED],
  ],
  [
    "a message that repeats the deltas (abundantbeing/hermes-browser-extension#11)",
    chunk({ content: "all" }) +
      data({ choices: [{ index: 0, message: { role: "assistant", content: "all" }, finish_reason: "stop" }] }) +
      DONE,
    [text("all"), FINISHED],
  ],
  [
    "roles that are empty (MiniMax-AI/MiniMax-M2.5#2)",
    chunk({ role: "", content: "a" }) + chunk({ role: "", reasoning_content: "" }) + stop,
    [text("a"), FINISHED],
  ],
  [
    "an error in a field of its own (ggml-org/llama.cpp#16104)",
    `error: {"code":400,"message":"the request exceeds the available context size","type":"invalid_request_error"}\n\n${DONE}`,
    [
      {
        type: "error",
        error: { kind: "invalid-request", message: "the request exceeds the available context size" },
      },
    ],
  ],
  [
    "an error in a line without a field (pepperoni21/ollama-rs#357)",
    `${chunk({ content: "a" })}{"error":"out of memory"}\n`,
    [text("a"), told("out of memory")],
  ],
  [
    "MiniMax's status of an error (infiniflow/ragflow#17292)",
    data({ choices: null, base_resp: { status_code: 1002, status_msg: "rate limit" } }),
    [{ type: "error", error: { kind: "rate-limit", message: "rate limit", code: "rate_limit_exceeded" } }],
  ],
  [
    "MiniMax's status of success",
    chunk({ content: "a" }, null, { base_resp: { status_code: 0, status_msg: "" } }) + stop,
    [text("a"), FINISHED],
  ],
  [
    "a call that Gemini's endpoint refuses (BerriAI/litellm#21744)",
    chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL") + DONE,
    [failure("The provider ended its answer early.")],
  ],
  ["a delta that is null", chunk(null) + chunk({ content: "a" }) + stop, [text("a"), FINISHED]],
  [
    "only the choice with index 0",
    data({ choices: [{ index: 1, delta: { content: "no" }, finish_reason: "length" }] }) + chunk({ content: "a" }) + stop,
    [text("a"), FINISHED],
  ],
  [
    "content as a list of parts",
    chunk({ content: [{ type: "text", text: "a" }, "b", { type: "image_url" }] }) + stop,
    [text("ab"), FINISHED],
  ],
  [
    "thinking inside the content",
    chunk({
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "h" }] },
        { type: "text", text: "a" },
      ],
    }) + stop,
    [thinking("h"), text("a"), FINISHED],
  ],
  [
    "refusal deltas",
    chunk({ refusal: "I " }) + chunk({ refusal: "won't" }) + stop,
    [
      { type: "refusal", text: "I won't" },
      { type: "finish", reason: "refusal" },
    ],
  ],
  [
    "reasoning_content",
    chunk({ reasoning_content: "hm" }) + chunk({ content: "a" }) + stop,
    [thinking("hm"), text("a"), FINISHED],
  ],
  ["reasoning", chunk({ reasoning: "hm" }) + chunk({ content: "a" }) + stop, [thinking("hm"), text("a"), FINISHED]],
  [
    "the same reasoning under both names once",
    chunk({ reasoning: "hm", reasoning_content: "hm" }) + stop,
    [thinking("hm"), FINISHED],
  ],
  ["reasoning and text in one chunk", chunk({ reasoning: "hm", content: "a" }) + stop, [thinking("hm"), text("a"), FINISHED]],
  [
    "reasoning_details beside the same text, with a signature and encrypted data",
    chunk({ reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm" }] }) +
      chunk({
        reasoning_details: [
          { type: "reasoning.text", signature: "sig" },
          { type: "reasoning.encrypted", data: "enc" },
        ],
      }) +
      stop,
    [thinking("hm"), { type: "thinking-signature", signature: "sig" }, { type: "redacted-thinking", data: "enc" }, FINISHED],
  ],
  [
    "reasoning_details alone, text and summary",
    chunk({
      reasoning_details: [
        { type: "reasoning.text", text: "h" },
        { type: "reasoning.summary", summary: "m" },
      ],
    }) + stop,
    [thinking("hm"), FINISHED],
  ],
  [
    "a tool call in pieces",
    toolChunk({ index: 0, id: "c1", type: "function", function: { name: "f", arguments: "" } }) +
      toolChunk({ index: 0, function: { arguments: '{"a"' } }) +
      toolChunk({ index: 0, function: { arguments: ":1}" } }) +
      toolStop,
    [start(0, "c1", "f"), args(0, '{"a":1}'), end(0), TOOL],
  ],
  [
    "several calls interleaved",
    toolChunk(
      { index: 0, id: "a", function: { name: "f", arguments: "{" } },
      { index: 1, id: "b", function: { name: "g", arguments: '{"' } },
    ) +
      toolChunk({ index: 0, function: { arguments: "}" } }) +
      toolChunk({ index: 1, function: { arguments: 'x":1}' } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{"), start(1, "b", "g"), args(1, '{"'), args(0, "}"), end(0), args(1, 'x":1}'), end(1), TOOL],
  ],
  [
    "text between tool calls",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }) +
      chunk({ content: "and" }) +
      toolChunk({ index: 1, id: "b", function: { name: "g", arguments: "{}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), text("and"), start(1, "b", "g"), args(1, "{}"), end(1), TOOL],
  ],
  [
    "two calls on one index",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }) +
      toolChunk({ index: 0, id: "b", function: { name: "g", arguments: "{}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), start(1, "b", "g"), args(1, "{}"), end(1), TOOL],
  ],
  [
    "two calls on one index without ids",
    toolChunk({ index: 0, id: "", function: { name: "f", arguments: "{}" } }) +
      toolChunk({ index: 0, id: "", function: { name: "f", arguments: '{"n":2}' } }) +
      toolStop,
    [start(0, "", "f"), args(0, "{}"), end(0), start(1, "", "f"), args(1, '{"n":2}'), end(1), TOOL],
  ],
  [
    "a delta without an id at first",
    toolChunk({ index: 0, function: { name: "f", arguments: "" } }) +
      toolChunk({ index: 0, id: "late", function: { arguments: "{}" } }) +
      toolStop,
    [start(0, "late", "f"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "a name after the id",
    toolChunk({ index: 0, id: "a" }) +
      toolChunk({ index: 0, function: { name: "f" } }) +
      toolChunk({ index: 0, function: { arguments: "{}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "the id and name repeated in each delta",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{" } }) +
      toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "}" } }) +
      toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "a new id made up for each delta",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{" } }) +
      toolChunk({ index: 0, id: "b", function: { arguments: "}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "calls without an index",
    toolChunk({ id: "a", function: { name: "f", arguments: "{}" } }) +
      toolChunk({ id: "b", function: { name: "g", arguments: "{}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), start(1, "b", "g"), args(1, "{}"), end(1), TOOL],
  ],
  [
    "indexes that begin at 3",
    toolChunk({ index: 3, id: "a", function: { name: "f", arguments: "{}" } }) + toolStop,
    [start(0, "a", "f"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "arguments in one chunk with the finish reason",
    chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"x":"}"}' } }] }, "tool_calls") + DONE,
    [start(0, "a", "f"), args(0, '{"x":"}"}'), end(0), TOOL],
  ],
  [
    "arguments as an object",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: { x: [1] } } }) + toolStop,
    [start(0, "a", "f"), args(0, '{"x":[1]}'), end(0), TOOL],
  ],
  [
    "a call without arguments",
    toolChunk({ index: 0, id: "a", function: { name: "f" } }) + toolStop,
    [start(0, "a", "f"), end(0), TOOL],
  ],
  [
    "the older function_call",
    chunk({ function_call: { name: "f", arguments: "" } }) +
      chunk({ function_call: { arguments: "{}" } }) +
      chunk({}, "function_call") +
      DONE,
    [start(0, "", "f"), args(0, "{}"), end(0), TOOL],
  ],
  ["an empty entry among the tool calls", toolChunk({ index: 0 }) + chunk({ content: "a" }) + stop, [text("a"), FINISHED]],
  [
    "stop although a tool was called",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }) + stop,
    [start(0, "a", "f"), args(0, "{}"), end(0), TOOL],
  ],
  ["tool_calls although none was made", chunk({ content: "a" }) + toolStop, [text("a"), FINISHED]],
  ["an empty finish reason is none", chunk({ content: "a" }, "") + chunk({ content: "b" }, "") + stop, [text("ab"), FINISHED]],
  ["length", chunk({ content: "a" }, "length") + DONE, [text("a"), { type: "finish", reason: "length" }]],
  [
    "usage in a last chunk with empty choices",
    chunk({ content: "a" }, "stop") +
      data({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } }) +
      DONE,
    [text("a"), { type: "usage", usage: { input: 3, output: 1 } }, FINISHED],
  ],
  [
    "usage in every chunk: the last holds",
    chunk({ content: "a" }, null, { usage: { prompt_tokens: 3, completion_tokens: 1 } }) +
      chunk({}, "stop", { usage: { prompt_tokens: 3, completion_tokens: 2 } }) +
      DONE,
    [text("a"), { type: "usage", usage: { input: 3, output: 2 } }, FINISHED],
  ],
  [
    "usage inside the choice",
    data({
      choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop", usage: { prompt_tokens: 1, completion_tokens: 2 } }],
    }) + DONE,
    [text("a"), { type: "usage", usage: { input: 1, output: 2 } }, FINISHED],
  ],
  ["no end marker after a finish", chunk({ content: "a" }, "stop"), [text("a"), FINISHED]],
  ["no blank line after the last event", chunk({ content: "a" }, "stop").trimEnd(), [text("a"), FINISHED]],
  ["an end marker without a finish", chunk({ content: "a" }) + DONE, [text("a"), FINISHED]],
  ["a stream cut after text", chunk({ content: "a" }), [text("a"), CUT]],
  ["a stream cut inside an event", `${chunk({ content: "a" })}data: {"choices":[{"index":0,"del`, [text("a"), CUT]],
  ["a stream cut inside the end marker after a finish", `${chunk({ content: "a" }, "stop")}data: [DO`, [text("a"), FINISHED]],
  [
    "a stream cut inside a tool call ends no call",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{" } }),
    [start(0, "a", "f"), args(0, "{"), CUT],
  ],
  ["an empty stream", "", [CUT]],
  ["an end marker without content (kitty-bridge#131, suna#4099)", role + DONE, [CUT]],
  ["a finish reason without content", role + stop, [FINISHED]],
  [
    "an end marker after a call without arguments",
    toolChunk({ index: 0, id: "a", function: { name: "f" } }) + DONE,
    [start(0, "a", "f"), end(0), TOOL],
  ],
  [
    "a name in pieces (continuedev/continue#5849)",
    toolChunk({ index: 0, id: "a", function: { name: "edit_ex", arguments: "" } }) +
      toolChunk({ index: 0, function: { name: "isting_file" } }) +
      toolChunk({ index: 0, function: { arguments: '{"x":1}' } }) +
      toolStop,
    [start(0, "a", "edit_existing_file"), args(0, '{"x":1}'), end(0), TOOL],
  ],
  [
    "a name that grows with each delta",
    toolChunk({ index: 0, id: "a", function: { name: "edit_ex" } }) +
      toolChunk({ index: 0, id: "a", function: { name: "edit_existing_file", arguments: "{}" } }) +
      toolStop,
    [start(0, "a", "edit_existing_file"), args(0, "{}"), end(0), TOOL],
  ],
  [
    "an empty object before the arguments (microsoft/autogen#7549)",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }) +
      toolChunk({ index: 0, function: { arguments: '{"x":' } }) +
      toolChunk({ index: 0, function: { arguments: "1}" } }) +
      toolStop,
    [start(0, "a", "f"), args(0, '{"x":1}'), end(0), TOOL],
  ],
  [
    "an empty object as the arguments, before text",
    toolChunk({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }) +
      toolChunk({ index: 0, function: { arguments: "\n" } }) +
      chunk({ content: "a" }) +
      toolStop,
    [start(0, "a", "f"), args(0, "{}\n"), end(0), text("a"), TOOL],
  ],
  ["a body that is no event stream", '{"choices":[]}\n', [CUT]],
  ["data after the end", chunk({ content: "a" }, "stop") + DONE + chunk({ content: "late" }), [text("a"), FINISHED]],
  [
    "an error object in the stream",
    chunk({ content: "a" }) +
      data({ error: { message: "Too many", type: "rate_limit_error", code: "slow_down" } }) +
      chunk({ content: "late" }),
    [text("a"), { type: "error", error: { kind: "rate-limit", message: "Too many", code: "slow_down" } }],
  ],
  ["an error as a sentence", data({ error: "broken" }), [told("broken")]],
  ["an event named error", 'event: error\ndata: {"message":"broken"}\n\n', [told("broken")]],
  [
    "an object of type error",
    data({ object: "error", message: "no", code: 404 }),
    [{ type: "error", error: { kind: "not-found", message: "no" } }],
  ],
  [
    "an error inside the choice",
    data({ choices: [{ index: 0, delta: {}, error: { message: "gone", code: 502 } }] }),
    [told("gone")],
  ],
  [
    "a finish reason that says error",
    chunk({ content: "a" }, "error") + DONE,
    [text("a"), failure("The provider ended its answer early.")],
  ],
  ["a null error is none", data({ error: null, choices: [{ delta: { content: "a" } }] }) + stop, [text("a"), FINISHED]],
  [
    "malformed JSON breaks the answer once",
    `data: {"a":\n\ndata: {oops\n\n${chunk({ content: "late" })}`,
    [failure("The provider's stream contains an event that is not valid JSON.")],
  ],
  ["JSON that is no object", `data: 1\n\ndata: null\n\ndata: []\n\n${chunk({ content: "a" })}${stop}`, [text("a"), FINISHED]],
  [
    "foreign events",
    `event: heartbeat\ndata: 12:00\n\nevent: metrics\ndata: {"a":1}\n\n${chunk({ content: "a" })}${stop}`,
    [text("a"), FINISHED],
  ],
  [
    "comments, pings, ids, retries and empty data",
    `: hi\n\nid: 4\nretry: 10\n\ndata:\n\n${chunk({ content: "a" })}: ping\n\n${stop}`,
    [text("a"), FINISHED],
  ],
  [
    "a call with arguments but no name",
    toolChunk({ index: 0, id: "a", function: { arguments: "{}" } }) + toolStop,
    [failure("The provider's answer has a tool call without a name.")],
  ],
  [
    "fields that nobody knows",
    chunk({ content: "a", audio: { data: "x" }, surprise: 1 }, null, { surprise: 2 }) + stop,
    [text("a"), FINISHED],
  ],
];

describe("reading Chat Completions streams as vendors send them", () => {
  it.each(TABLE)("%s", (_title, stream, expected) => {
    expect(said(readChat(stream))).toEqual(expected);
  });

  it.each([
    ["CRLF", (stream: string) => stream.replaceAll("\n", "\r\n")],
    ["a lone CR", (stream: string) => stream.replaceAll("\n", "\r")],
    ["no space after data:", (stream: string) => stream.replaceAll("data: ", "data:")],
    ["a byte order mark", (stream: string) => `\uFEFF${stream}`],
  ])("%s changes nothing", (_title, change) => {
    for (const [, stream, expected] of TABLE) expect(said(readChat(change(stream)))).toEqual(expected);
  });

  it.each(TABLE)("cut at every byte, it says the same: %s", (_title, stream, expected) => {
    const all = bytes(stream);
    const single = Array.from(all, (_, at) => all.subarray(at, at + 1));
    expect(said(readAll(readChatStream(), single))).toEqual(expected);
    for (let at = 1; at < all.length; at += 1) {
      const reader = readChatStream();
      expect(said([...reader.push(all.subarray(0, at)), ...reader.push(all.subarray(at)), ...reader.end()])).toEqual(expected);
    }
  });

  it("keeps characters whose UTF-8 is split across chunks", () => {
    const all = bytes(chunk({ content: "née 漢字 👩‍👩‍👧" }) + stop);
    const single = Array.from(all, (_, at) => all.subarray(at, at + 1));
    expect(said(readAll(readChatStream(), single))).toEqual([text("née 漢字 👩‍👩‍👧"), FINISHED]);
  });

  it("emits text immediately, not only at the end", () => {
    const reader = readChatStream();
    expect(reader.push(bytes(chunk({ content: "now" })))).toEqual([{ type: "start", model: "up-model" }, text("now")]);
  });

  it("begins the next call while the stream goes on, once the first one's arguments are complete", () => {
    const reader = readChatStream();
    reader.push(bytes(toolChunk({ index: 0, id: "a", function: { name: "f", arguments: '{"x":{}}' } })));
    const next = reader.push(bytes(toolChunk({ index: 1, id: "b", function: { name: "g", arguments: '{"y"' } })));
    expect(next).toEqual([end(0), start(1, "b", "g"), args(1, '{"y"')]);
  });

  it("stops at an event that grows without bound", () => {
    const reader = readChatStream();
    const megabyte = bytes("x".repeat(1024 * 1024));
    const events = [...reader.push(bytes("data: "))];
    for (let sent = 0; sent <= STREAM_EVENT_CHARACTERS; sent += megabyte.length) events.push(...reader.push(megabyte));
    expect(events).toEqual([failure("The provider's stream contains an event that is too large.")]);
    expect([...reader.push(bytes("\n\n")), ...reader.end()]).toEqual([]);
  });

  it("stops at arguments that are nested deeper than can be written", () => {
    const nested = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    const called = `{"index":0,"id":"a","function":{"name":"f","arguments":${nested}}}`;
    const stream = `data: {"choices":[{"delta":{"tool_calls":[${called}]}}]}\n\n`;
    expect(said(readChat(stream))).toEqual([failure("The provider's answer is nested too deeply.")]);
  });

  it("stops at more unfinished tool calls than an answer may have", () => {
    const calls = Array.from({ length: 1_001 }, (_, index) => ({
      index,
      id: `c${index}`,
      function: { name: "f", arguments: "{" },
    }));
    expect(readChat(toolChunk(...calls)).at(-1)).toEqual(failure("The provider's answer has more than 1000 tool calls."));
  });
});
