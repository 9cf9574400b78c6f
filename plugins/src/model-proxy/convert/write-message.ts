import { AnswerToolIds } from "./answer/answer-tool-ids.ts";
import type { ContentBlock } from "./answer/content-blocks.ts";
import { messagesStopReason } from "./answer/finish-reason.ts";
import { messagesUsage } from "./answer/usage.ts";
import { gatherAnswer, type WholeAnswer } from "./answer/whole-answer.ts";
import { AnswerFailed } from "./answer-failed.ts";
import { parseExactly } from "./exact-json.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import type { ModelEvent } from "./model-events.ts";
import { toolIdForMessages } from "./tool-ids.ts";

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
      const id = toolIdForMessages(ids.next(block.call, block.id));
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
