import type { FinishReason } from "../model-events.ts";

const CHAT: Readonly<Record<FinishReason, string>> = {
  end: "stop",
  length: "length",
  tool: "tool_calls",
  "stop-sequence": "stop",
  refusal: "content_filter",
  // Chat Completions has one word for every answer that ran out of room.
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

/** Both protocols' published reasons and those that vendors of either are known to send, in lower case. */
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
  ["model_context_window_exceeded", "context-window"],
  ["model_length", "context-window"],
  ["pause_turn", "pause"],
]);

/** Reasons by which vendors say that the answer broke off: an error, never an end. */
const BROKEN: ReadonlySet<string> = new Set([
  "error",
  "network_error",
  "insufficient_system_resource",
  "malformed_function_call",
]);

/** Whether an upstream's reason says that the answer failed and is not to be taken for finished. */
export function isBrokenFinish(reason: string): boolean {
  return BROKEN.has(reason.toLowerCase());
}

/** What an upstream's own word for the end of its answer means, in either protocol; an unknown word is an ordinary end. */
export function readFinishReason(reason: string): FinishReason {
  return KNOWN.get(reason.toLowerCase()) ?? "end";
}

/**
 * Makes the reason agree with the content: vendors say "stop" after tool calls or a refusal, and "tool_calls" where there are
 * none; a caller's loop would then stop short, or wait for a result of nothing.
 */
export function settleFinishReason(reason: FinishReason, content: { toolCalls: boolean; refused: boolean }): FinishReason {
  if (reason === "end" && content.toolCalls) return "tool";
  if (reason === "tool" && !content.toolCalls) return "end";
  if (reason === "end" && content.refused) return "refusal";
  return reason;
}

/**
 * `finish_reason` of Chat Completions. `refused`: the answer has refusal text, and so needs no filter to explain it. `isLegacy`: the
 * caller knows functions and not tools.
 */
export function chatFinishReason(reason: FinishReason, refused: boolean, isLegacy = false): string {
  if (reason === "tool" && isLegacy) return "function_call";
  return reason === "refusal" && refused ? "stop" : CHAT[reason];
}

/** `stop_reason` of Messages. */
export function messagesStopReason(reason: FinishReason): string {
  return MESSAGES[reason];
}
