import type { FinishReason } from "../model-events.ts";

const CHAT: Readonly<Record<FinishReason, string>> = {
  end: "stop",
  length: "length",
  tool: "tool_calls",
  "stop-sequence": "stop",
  refusal: "content_filter",
  // Chat Completions has one reason for all answers that reached a limit.
  "context-window": "length",
  pause: "stop",
};

const MESSAGES: Readonly<Record<FinishReason, string>> = {
  end: "end_turn",
  length: "max_tokens",
  tool: "tool_use",
  "stop-sequence": "stop_sequence",
  refusal: "refusal",
  "context-window": "model_context_window_exceeded",
  pause: "pause_turn",
};

/** The published reasons of both protocols, and other known reasons of vendors, in lower case. */
const KNOWN: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["stop", "end"],
  ["end_turn", "end"],
  ["eos", "end"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["max_output_tokens", "length"],
  ["max_length", "length"],
  ["incomplete", "length"],
  ["tool_calls", "tool"],
  ["tool_call", "tool"],
  ["tool_use", "tool"],
  ["function_call", "tool"],
  ["stop_sequence", "stop-sequence"],
  ["content_filter", "refusal"],
  ["content_filtered", "refusal"],
  ["refusal", "refusal"],
  ["safety", "refusal"],
  ["recitation", "refusal"],
  ["blocklist", "refusal"],
  ["prohibited_content", "refusal"],
  ["spii", "refusal"],
  ["model_armor", "refusal"],
  ["image_safety", "refusal"],
  ["image_prohibited_content", "refusal"],
  ["image_recitation", "refusal"],
  ["sensitive", "refusal"],
  ["guardrail_intervened", "refusal"],
  ["model_context_window_exceeded", "context-window"],
  ["model_length", "context-window"],
  ["pause_turn", "pause"],
]);

/** Reasons with which vendors report that they ended the answer early. They are errors. */
const BROKEN: ReadonlySet<string> = new Set([
  "error",
  "network_error",
  "insufficient_system_resource",
  "malformed_function_call",
  "unexpected_tool_call",
  "too_many_tool_calls",
]);

/** Whether an upstream's reason means that the answer failed. */
export function isBrokenFinish(reason: string): boolean {
  return wordsOf(reason).some((word) => BROKEN.has(word));
}

/** Translates an upstream's reason, of either protocol. An unknown reason counts as a normal end. */
export function readFinishReason(reason: string): FinishReason {
  return wordsOf(reason).flatMap((word) => KNOWN.get(word) ?? [])[0] ?? "end";
}

/** Gemini's compatible endpoint adds its own reason: `function_call_filter: MALFORMED_FUNCTION_CALL`, `content_filter: RECITATION`. */
function wordsOf(reason: string): readonly string[] {
  return reason
    .toLowerCase()
    .split(":")
    .map((word) => word.trim());
}

/**
 * Makes the reason agree with the content. Some vendors send "stop" after tool calls or a refusal, and "tool_calls" without tool
 * calls. A caller's loop would then stop too early, or wait for the result of a missing call.
 */
export function settleFinishReason(reason: FinishReason, content: { toolCalls: boolean; refused: boolean }): FinishReason {
  if (reason === "end" && content.toolCalls) return "tool";
  if (reason === "tool" && !content.toolCalls) return "end";
  if (reason === "end" && content.refused) return "refusal";
  return reason;
}

/**
 * `finish_reason` of Chat Completions. `refused`: the answer has refusal text, so the reason need not be a content filter. `isLegacy`: the
 * caller uses functions instead of tools.
 */
export function chatFinishReason(reason: FinishReason, refused: boolean, isLegacy = false): string {
  if (reason === "tool" && isLegacy) return "function_call";
  return reason === "refusal" && refused ? "stop" : CHAT[reason];
}

/** `stop_reason` of Messages. */
export function messagesStopReason(reason: FinishReason): string {
  return MESSAGES[reason];
}
