import { AnswerToolIds } from "./answer/answer-tool-ids.ts";
import type { ContentBlock } from "./answer/content-blocks.ts";
import { chatFinishReason } from "./answer/finish-reason.ts";
import { chatUsage } from "./answer/usage.ts";
import { gatherAnswer } from "./answer/whole-answer.ts";
import type { JsonObject } from "./json.ts";
import type { ModelEvent } from "./model-events.ts";
import { toolIdForChat } from "./tool-ids.ts";

/**
 * Writes a whole answer as a Chat Completions completion. `created` is in seconds. `usage` is written only if the upstream reported it
 * (4.1: missing usage is not zero consumption). A caller that declared `functions` gets the older `function_call`.
 *
 * @throws AnswerFailed if the answer broke.
 */
export function writeChatCompletion(
  events: readonly ModelEvent[],
  options: { id: string; model: string; created: number; isLegacy?: boolean },
): JsonObject {
  const { blocks, usage, reason } = gatherAnswer(events);
  const ids = new AnswerToolIds(options.id);
  const text = joined(blocks, "text");
  const refusal = joined(blocks, "refusal");
  const calls = blocks.filter((block) => block.kind === "tool");
  const message = {
    role: "assistant",
    content: text === "" && (refusal !== "" || calls.length > 0) ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...reasoning(blocks),
    ...(calls.length > 0 &&
      called(
        calls.map((call) => toolCall(call, ids)),
        options.isLegacy,
      )),
  };
  const reported = chatUsage(usage);
  return {
    id: options.id,
    object: "chat.completion",
    created: options.created,
    model: options.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: chatFinishReason(reason, refusal !== "", options.isLegacy) }],
    ...(reported !== undefined && { usage: reported }),
  };
}

/** The text for display. Details are added only if the next request must return them unchanged. */
function reasoning(blocks: readonly ContentBlock[]): JsonObject {
  const thinking = blocks.filter((block) => block.kind === "thinking" || block.kind === "redacted-thinking");
  const text = joined(thinking, "thinking");
  const isPlain = thinking.every((block) => block.kind === "thinking" && block.signature === "");
  return {
    ...(text !== "" && { reasoning_content: text }),
    ...(!isPlain && { reasoning_details: thinking.map(reasoningDetail) }),
  };
}

function reasoningDetail(block: ContentBlock): JsonObject {
  if (block.kind === "redacted-thinking") return { type: "reasoning.encrypted", data: block.text };
  return { type: "reasoning.text", text: block.text, ...(block.signature !== "" && { signature: block.signature }) };
}

/** `function_call` can contain only one call. The converted request switches parallel calls off. */
function called(calls: readonly ToolCall[], isLegacy: boolean | undefined): JsonObject {
  return isLegacy ? { function_call: calls[0]?.function } : { tool_calls: calls };
}

function toolCall(block: ContentBlock, ids: AnswerToolIds): ToolCall {
  return {
    id: toolIdForChat(ids.next(block.call, block.id)),
    type: "function",
    function: { name: block.name, arguments: block.text.trim() === "" ? "{}" : block.text },
  };
}

type ToolCall = { readonly id: string; readonly type: string; readonly function: JsonObject };

function joined(blocks: readonly ContentBlock[], kind: ContentBlock["kind"]): string {
  return blocks.map((block) => (block.kind === kind ? block.text : "")).join("");
}
