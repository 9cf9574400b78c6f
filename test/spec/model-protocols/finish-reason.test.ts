import { describe, expect, it } from "vitest";
import {
  chatFinishReason,
  isBrokenFinish,
  messagesStopReason,
  readFinishReason,
  settleFinishReason,
} from "../../../core/src/model-protocols/answer/finish-reason.ts";

describe("reasons to stop", () => {
  it.each([
    ["stop", "end", "stop", "end_turn"],
    ["length", "length", "length", "max_tokens"],
    ["tool_calls", "tool", "tool_calls", "tool_use"],
    ["function_call", "tool", "tool_calls", "tool_use"],
    ["content_filter", "refusal", "content_filter", "refusal"],
    ["end_turn", "end", "stop", "end_turn"],
    ["max_tokens", "length", "length", "max_tokens"],
    ["stop_sequence", "stop-sequence", "stop", "stop_sequence"],
    ["tool_use", "tool", "tool_calls", "tool_use"],
    ["pause_turn", "pause", "stop", "pause_turn"],
    ["refusal", "refusal", "content_filter", "refusal"],
    ["model_context_window_exceeded", "context-window", "length", "model_context_window_exceeded"],
    ["eos", "end", "stop", "end_turn"],
    ["STOP", "end", "stop", "end_turn"],
    ["MAX_TOKENS", "length", "length", "max_tokens"],
    ["model_length", "context-window", "length", "model_context_window_exceeded"],
    ["SAFETY", "refusal", "content_filter", "refusal"],
    ["content_filter: RECITATION", "refusal", "content_filter", "refusal"],
    ["SPII", "refusal", "content_filter", "refusal"],
    ["sensitive", "refusal", "content_filter", "refusal"],
    ["something_new", "end", "stop", "end_turn"],
  ])("%s means %s: %s in Chat Completions, %s in Messages", (given, meaning, chat, messages) => {
    const reason = readFinishReason(given);
    expect([reason, chatFinishReason(reason, false), messagesStopReason(reason)]).toEqual([meaning, chat, messages]);
  });

  it("a refusal in words is an ordinary stop in Chat Completions", () => {
    expect(chatFinishReason("refusal", true)).toBe("stop");
    expect(chatFinishReason("length", true)).toBe("length");
  });

  it.each([
    ["end", true, false, "tool"],
    ["tool", false, false, "end"],
    ["end", false, true, "refusal"],
    ["end", true, true, "tool"],
    ["tool", true, false, "tool"],
    ["length", true, false, "length"],
    ["stop-sequence", true, true, "stop-sequence"],
    ["end", false, false, "end"],
  ] as const)("%s with tool calls: %s and a refusal: %s is %s", (given, toolCalls, refused, expected) => {
    expect(settleFinishReason(given, { toolCalls, refused })).toBe(expected);
  });

  it("distinguish a failed answer from a complete one", () => {
    expect(
      ["error", "ERROR", "insufficient_system_resource", "function_call_filter: MALFORMED_FUNCTION_CALL"].every(isBrokenFinish),
    ).toBe(true);
    expect(["stop", "length", "content_filter", "whatever"].some(isBrokenFinish)).toBe(false);
  });
});
