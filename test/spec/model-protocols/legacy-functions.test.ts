import { describe, expect, it } from "vitest";
import { convertRequest } from "../../../core/src/model-protocols/convert-bytes.ts";
import type { ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import { writeChatCompletion } from "../../../core/src/model-protocols/write-answer.ts";
import { writeChatStream } from "../../../core/src/model-protocols/write-chat-stream.ts";
import { collectChatStream } from "../../harness/stream-grammar.ts";

const names = { id: "chatcmpl-1", model: "m", created: 1, isLegacy: true };

const oneCall: readonly ModelEvent[] = [
  { type: "start" },
  { type: "text", text: "Let me look." },
  { type: "tool-start", call: 0, id: "toolu_1", name: "weather" },
  { type: "tool-arguments", call: 0, json: '{"city":' },
  { type: "tool-arguments", call: 0, json: '"Oslo"}' },
  { type: "tool-end", call: 0 },
  { type: "finish", reason: "tool" },
];

function converted(body: object): ReturnType<typeof convertRequest> {
  return convertRequest("chat-completions", Buffer.from(JSON.stringify(body)), {});
}

describe("a caller that declares functions instead of tools", () => {
  it("is recognised by its request", () => {
    const base = { model: "m", messages: [{ role: "user", content: "hi" }] };
    const functions = [{ name: "weather", parameters: { type: "object" } }];
    expect(converted({ ...base, functions }).isLegacy).toBe(true);
    expect(converted(base).isLegacy).toBe(false);
    expect(converted({ ...base, tools: functions.map((each) => ({ type: "function", function: each })) }).isLegacy).toBe(false);
  });

  it("gets its call as function_call in a whole answer", () => {
    const { choices } = writeChatCompletion(oneCall, names) as { choices: readonly object[] };
    expect(choices[0]).toMatchObject({
      message: { content: "Let me look.", function_call: { name: "weather", arguments: '{"city":"Oslo"}' } },
      finish_reason: "function_call",
    });
    expect(JSON.stringify(choices)).not.toContain("tool_calls");
  });

  it("gets its call as function_call in a stream", () => {
    const stream = collectChatStream(writeChatStream({ ...names, includeUsage: false }).write(oneCall));
    expect(stream.functionCall).toEqual({ name: "weather", arguments: '{"city":"Oslo"}' });
    expect(stream).toMatchObject({ toolCalls: [], finishReason: "function_call", content: "Let me look." });
  });

  it("gets an empty object where the call has no arguments", () => {
    const events = oneCall.filter((event) => event.type !== "tool-arguments");
    const stream = collectChatStream(writeChatStream({ ...names, includeUsage: false }).write(events));
    expect(stream.functionCall).toEqual({ name: "weather", arguments: "{}" });
  });

  it("gets only the first call, because `function_call` has no place for a second", () => {
    const second: readonly ModelEvent[] = [
      ...oneCall.slice(0, -1),
      { type: "tool-start", call: 1, id: "toolu_2", name: "time" },
      { type: "tool-arguments", call: 1, json: "{}" },
      { type: "tool-end", call: 1 },
      { type: "finish", reason: "tool" },
    ];
    const stream = collectChatStream(writeChatStream({ ...names, includeUsage: false }).write(second));
    expect(stream.functionCall).toEqual({ name: "weather", arguments: '{"city":"Oslo"}' });
  });
});
