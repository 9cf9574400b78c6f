import { describe, expect, it } from "vitest";
import type { ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import { readMessagesStream } from "../../../core/src/model-protocols/read-answer.ts";
import { bytes, CUT, DONE, FINISHED, message, readAll, readMessages, said } from "./answer-streams.ts";

const opening = message("message_start", {
  message: {
    id: "msg_up",
    type: "message",
    role: "assistant",
    content: [],
    model: "up",
    usage: { input_tokens: 5, output_tokens: 1 },
  },
});
const open = (index: number, block: object) => message("content_block_start", { index, content_block: block });
const delta = (index: number, fields: object) => message("content_block_delta", { index, delta: fields });
const close = (index: number) => message("content_block_stop", { index });
const stopped = (reason: string, sequence: string | null = null) =>
  message("message_delta", { delta: { stop_reason: reason, stop_sequence: sequence }, usage: { output_tokens: 9 } });
const ending = (reason = "end_turn") => stopped(reason) + message("message_stop");

const USAGE: ModelEvent = { type: "usage", usage: { input: 5, output: 9 } };
const START_USAGE: ModelEvent = { type: "usage", usage: { input: 5, output: 1 } };
const text = (value: string): ModelEvent => ({ type: "text", text: value });
const textBlock = open(0, { type: "text", text: "" }) + delta(0, { type: "text_delta", text: "hi" }) + close(0);

/** Title, stream, what it says. */
const TABLE: readonly (readonly [string, string, readonly ModelEvent[]])[] = [
  ["text", opening + textBlock + ending(), [text("hi"), USAGE, FINISHED]],
  [
    "an error in a field of its own (ggml-org/llama.cpp#16104)",
    `${opening}error: {"code":503,"message":"Loading model","type":"unavailable_error"}\n\n`,
    [{ type: "error", error: { kind: "overloaded", message: "Loading model" } }],
  ],
  [
    "counts at the beginning, and 0 in their place at the end (envoyproxy/ai-gateway#1631)",
    opening +
      textBlock +
      message("message_delta", { delta: { stop_reason: "end_turn" }, usage: { input_tokens: 0, output_tokens: 9 } }) +
      message("message_stop"),
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "text that stands in the start of its block",
    opening + open(0, { type: "text", text: "hi" }) + close(0) + ending(),
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "thinking with its signature, whose pieces are put together",
    opening +
      open(0, { type: "thinking", thinking: "", signature: "" }) +
      delta(0, { type: "thinking_delta", thinking: "hm" }) +
      delta(0, { type: "signature_delta", signature: "si" }) +
      delta(0, { type: "signature_delta", signature: "g" }) +
      close(0) +
      ending(),
    [{ type: "thinking", text: "hm" }, { type: "thinking-signature", signature: "sig" }, USAGE, FINISHED],
  ],
  [
    "a signature without thinking",
    opening +
      open(0, { type: "thinking", thinking: "" }) +
      delta(0, { type: "signature_delta", signature: "s" }) +
      close(0) +
      ending(),
    [{ type: "thinking-signature", signature: "s" }, USAGE, FINISHED],
  ],
  [
    "redacted thinking",
    opening + open(0, { type: "redacted_thinking", data: "x" }) + close(0) + ending(),
    [{ type: "redacted-thinking", data: "x" }, USAGE, FINISHED],
  ],
  [
    "tool use in pieces",
    opening +
      open(0, { type: "tool_use", id: "toolu_1", name: "f", input: {} }) +
      delta(0, { type: "input_json_delta", partial_json: "" }) +
      delta(0, { type: "input_json_delta", partial_json: '{"a":' }) +
      delta(0, { type: "input_json_delta", partial_json: "1}" }) +
      close(0) +
      ending("tool_use"),
    [
      { type: "tool-start", call: 0, id: "toolu_1", name: "f" },
      { type: "tool-arguments", call: 0, json: '{"a":1}' },
      { type: "tool-end", call: 0 },
      USAGE,
      { type: "finish", reason: "tool" },
    ],
  ],
  [
    "tool use without deltas, and one whose input stands in its start",
    opening +
      open(0, { type: "tool_use", id: "a", name: "f", input: {} }) +
      close(0) +
      open(1, { type: "tool_use", id: "b", name: "g", input: { x: 1 } }) +
      close(1) +
      ending("tool_use"),
    [
      { type: "tool-start", call: 0, id: "a", name: "f" },
      { type: "tool-end", call: 0 },
      { type: "tool-start", call: 1, id: "b", name: "g" },
      { type: "tool-arguments", call: 1, json: '{"x":1}' },
      { type: "tool-end", call: 1 },
      USAGE,
      { type: "finish", reason: "tool" },
    ],
  ],
  [
    "a server's own tools are not told on",
    opening +
      open(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }) +
      delta(0, { type: "input_json_delta", partial_json: "{}" }) +
      close(0) +
      open(1, { type: "web_search_tool_result", content: [] }) +
      close(1) +
      textBlock.replaceAll('"index":0', '"index":2') +
      ending(),
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "unknown events, deltas, blocks and citations",
    opening +
      message("future_event", { x: 1 }) +
      open(0, { type: "future_block" }) +
      delta(0, { type: "text_delta", text: "no" }) +
      close(0) +
      open(1, { type: "text", text: "", citations: [] }) +
      delta(1, { type: "citations_delta", citation: {} }) +
      delta(1, { type: "future_delta", text: "no" }) +
      delta(1, { type: "text_delta", text: "hi" }) +
      close(1) +
      ending(),
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "pings, also without JSON in them",
    `${opening + message("ping")}event: ping\ndata: pong\n\n${textBlock}${ending()}`,
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "usage that grows, caches included, each count as it was reported last",
    message("message_start", {
      message: {
        model: "up",
        usage: { input_tokens: 3, cache_read_input_tokens: 7, cache_creation_input_tokens: 2, output_tokens: 1 },
      },
    }) +
      textBlock +
      message("message_delta", { delta: {}, usage: { output_tokens: 4, input_tokens: 30 } }) +
      ending(),
    [text("hi"), { type: "usage", usage: { input: 30, cacheRead: 7, cacheWrite: 2, output: 9 } }, FINISHED],
  ],
  [
    "no message_stop after a reason",
    opening + textBlock + stopped("max_tokens"),
    [text("hi"), USAGE, { type: "finish", reason: "length" }],
  ],
  ["message_stop without a reason", opening + textBlock + message("message_stop"), [text("hi"), START_USAGE, FINISHED]],
  ["a foreign end marker", opening + textBlock + stopped("end_turn") + DONE, [text("hi"), USAGE, FINISHED]],
  [
    "a stop sequence",
    opening + textBlock + stopped("stop_sequence", "END"),
    [text("hi"), USAGE, { type: "finish", reason: "stop-sequence", stopSequence: "END" }],
  ],
  ["a cut stream", opening + textBlock, [text("hi"), START_USAGE, CUT]],
  [
    "a stream cut inside a tool call ends no call",
    opening + open(0, { type: "tool_use", id: "a", name: "f" }),
    [{ type: "tool-start", call: 0, id: "a", name: "f" }, START_USAGE, CUT],
  ],
  ["an empty stream", "", [CUT]],
  ["an end without content and without a reason (kitty-bridge#131)", opening + message("message_stop"), [START_USAGE, CUT]],
  ["a reason without content", opening + ending(), [USAGE, FINISHED]],
  [
    "a second answer in the same stream (vercel/ai#18331)",
    opening + textBlock + opening + textBlock + ending(),
    [
      text("hi"),
      {
        type: "error",
        error: { kind: "upstream", message: "The provider's stream contains a second answer.", isUnreadable: true },
      },
    ],
  ],
  [
    "an empty object before the arguments (microsoft/autogen#7549)",
    opening +
      open(0, { type: "tool_use", id: "a", name: "f", input: {} }) +
      delta(0, { type: "input_json_delta", partial_json: "{}" }) +
      delta(0, { type: "input_json_delta", partial_json: '{"x":' }) +
      delta(0, { type: "input_json_delta", partial_json: "1}" }) +
      close(0) +
      ending("tool_use"),
    [
      { type: "tool-start", call: 0, id: "a", name: "f" },
      { type: "tool-arguments", call: 0, json: '{"x":1}' },
      { type: "tool-end", call: 0 },
      USAGE,
      { type: "finish", reason: "tool" },
    ],
  ],
  [
    "an error in the stream, and nothing after it",
    opening + message("error", { error: { type: "overloaded_error", message: "Overloaded" } }) + textBlock + ending(),
    [{ type: "error", error: { kind: "overloaded", message: "Overloaded" } }],
  ],
  [
    "an error without an event name",
    `${opening}data: {"error":{"message":"broken"}}\n\n`,
    [{ type: "error", error: { kind: "upstream", message: "broken" } }],
  ],
  [
    "malformed JSON",
    `${opening}event: content_block_delta\ndata: {"type"\n\n${textBlock}`,
    [
      {
        type: "error",
        error: {
          kind: "upstream",
          message: "The provider's stream contains an event that is not valid JSON.",
          isUnreadable: true,
        },
      },
    ],
  ],
  ["events after the end", opening + textBlock + ending() + textBlock, [text("hi"), USAGE, FINISHED]],
  [
    "a delta whose block never began",
    opening + delta(4, { type: "text_delta", text: "hi" }) + ending(),
    [text("hi"), USAGE, FINISHED],
  ],
  [
    "a block that never stopped",
    opening + open(0, { type: "tool_use", id: "a", name: "f" }) + ending("tool_use"),
    [
      { type: "tool-start", call: 0, id: "a", name: "f" },
      { type: "tool-end", call: 0 },
      USAGE,
      { type: "finish", reason: "tool" },
    ],
  ],
];

describe("reading Messages streams", () => {
  it.each(TABLE)("%s", (_title, stream, expected) => {
    expect(said(readMessages(stream))).toEqual(expected);
  });

  it.each(TABLE)("without event names, or with CRLF and no spaces, it says the same: %s", (_title, stream, expected) => {
    const bare = stream.replaceAll(/^(data|event): /gm, "$1:").replaceAll("\n", "\r\n");
    expect(said(readMessages(bare))).toEqual(expected);
    // Only its name tells that a foreign event's data need not be JSON.
    if (!stream.includes("pong")) expect(said(readMessages(stream.replaceAll(/event: .*\n/g, "")))).toEqual(expected);
  });

  it.each(TABLE)("cut at every byte, it says the same: %s", (_title, stream, expected) => {
    const all = bytes(stream);
    const single = Array.from(all, (_, at) => all.subarray(at, at + 1));
    expect(said(readAll(readMessagesStream(), single))).toEqual(expected);
  });

  it("emits the start immediately, with the usage that is known at that time", () => {
    expect(readMessagesStream().push(bytes(opening))).toEqual([{ type: "start", model: "up", usage: { input: 5, output: 1 } }]);
  });
});
