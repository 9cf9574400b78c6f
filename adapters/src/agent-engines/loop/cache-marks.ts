import type { JsonObject } from "@portico/core/model-protocols";
import type { ModelRequest, RequestMessage } from "../../models/call/model-request.ts";

/** A provider keeps what comes before a mark, and reads it from its cache in the next call. */
const MARK: JsonObject = { type: "ephemeral" };

/**
 * The same request with marks for the prompt cache: after the tools and instructions, after the messages of the call before, and after the
 * last message. `before` is the number of messages of the call before. A provider finds a kept beginning only up to 20 blocks before a mark,
 * and the results of one answer's calls may be more. So each call of a turn, and the first call of the next turn, finds all that came
 * before.
 */
export function markForCache(request: ModelRequest, before: number): ModelRequest {
  const { system, tools, messages } = request;
  const places = new Set([lastMarkable(messages, before), lastMarkable(messages, messages.length)]);
  const marked: ModelRequest = {
    ...request,
    messages: messages.map((message, at) => (places.has(at) ? { ...message, content: markLast(message.content) } : message)),
  };
  if (system !== undefined) {
    const blocks = typeof system === "string" ? [{ type: "text", text: system }] : system;
    return { ...marked, system: markLast(blocks) };
  }
  return tools && tools.length > 0 ? { ...marked, tools: markLast(tools) } : marked;
}

function markLast<T extends object>(blocks: readonly T[]): T[] {
  return blocks.map((block, at) => (at === blocks.length - 1 ? { ...block, cache_control: MARK } : block));
}

/** The last message before `end` that can carry a mark. */
function lastMarkable(messages: readonly RequestMessage[], end: number): number {
  return messages.findLastIndex((message, at) => at < end && canCarry(message));
}

/** Thinking carries no mark, and a message's mark is that of its last block. */
function canCarry({ content }: RequestMessage): boolean {
  const type = content.at(-1)?.["type"];
  return type !== "thinking" && type !== "redacted_thinking";
}
