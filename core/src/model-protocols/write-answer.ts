import { AnswerToolIds } from "./answer/answer-reader.ts";
import { type ContentBlock, ContentBlocks } from "./answer/content-blocks.ts";
import { chatFinishReason, messagesStopReason } from "./answer/finish-reason.ts";
import { chatUsage, mergeUsage, messagesUsage } from "./answer/usage.ts";
import { isJsonObject, type JsonObject, parseExactly } from "./json.ts";
import type { FinishReason, ModelError, ModelEvent, Usage } from "./model-events.ts";
import { signedToolId, toolIdForChat, toolIdForMessages } from "./tool-ids.ts";

/**
 * Writes a whole answer as a Messages message.
 *
 * @throws AnswerFailed if the answer broke, or if the arguments of a tool call are not a JSON object, which `input` must be. Exception: if
 *   the answer reached its token limit, its last call may be cut. That call gets an empty input, and the stop reason shows the limit.
 */
export function writeMessage(events: readonly ModelEvent[], options: { id: string; model: string }): JsonObject {
  const answer = gatherAnswer(events);
  const ids = new AnswerToolIds(options.id);
  return {
    id: options.id,
    type: "message",
    role: "assistant",
    content: answer.blocks.map((block) => contentBlock(block, answer, ids)),
    model: options.model,
    stop_reason: messagesStopReason(answer.reason),
    stop_sequence: answer.stopSequence ?? null,
    usage: messagesUsage(answer.usage),
  };
}

function contentBlock(block: ContentBlock, answer: WholeAnswer, ids: AnswerToolIds): JsonObject {
  switch (block.kind) {
    case "thinking":
      return { type: "thinking", thinking: block.text, signature: block.signature };
    case "redacted-thinking":
      return { type: "redacted_thinking", data: block.text };
    case "tool": {
      const id = signedToolId(toolIdForMessages(ids.next(block.call, block.id)), block.callSignature);
      return { type: "tool_use", id, name: block.name, input: toolInput(block, answer) };
    }
    default:
      return { type: "text", text: block.text };
  }
}

function toolInput(block: ContentBlock, answer: WholeAnswer): JsonObject {
  const text = block.text.trim();
  // Without arguments, some vendors send nothing, and some send null.
  if (text === "" || text === "null") return {};
  const input = parseJson(text);
  if (isJsonObject(input)) return input;
  const ranOut = answer.reason === "length" || answer.reason === "context-window";
  if (ranOut && input === undefined && block === answer.blocks.at(-1)) return {};
  const message = `The provider's arguments for the tool "${block.name}" are not a JSON object.`;
  throw new AnswerFailed({ kind: "upstream", message });
}

function parseJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

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

/** The content of all events of an answer, for the writers of whole answers. */
export interface WholeAnswer {
  readonly blocks: readonly ContentBlock[];
  readonly usage: Usage | undefined;
  readonly reason: FinishReason;
  readonly stopSequence: string | undefined;
}

/**
 * Collects the events of a whole answer.
 *
 * @throws AnswerFailed if the answer broke or has no end.
 */
export function gatherAnswer(events: readonly ModelEvent[]): WholeAnswer {
  const blocks = new ContentBlocks();
  let usage: Usage | undefined;
  for (const event of events) {
    if (event.type === "error") throw new AnswerFailed(event.error);
    if (event.type === "start" || event.type === "usage") usage = mergeUsage(usage, event.usage);
    else if (event.type !== "finish") blocks.add(event);
    else return { blocks: blocks.list, usage, reason: event.reason, stopSequence: event.stopSequence };
  }
  throw new AnswerFailed({ kind: "upstream", message: "The provider's answer has no end." });
}

/** A whole answer that cannot be written: it broke, or the caller's protocol cannot express its content. */
export class AnswerFailed extends Error {
  override readonly name = "AnswerFailed";
  readonly error: ModelError;

  constructor(error: ModelError) {
    super(error.message);
    this.error = error;
  }
}
