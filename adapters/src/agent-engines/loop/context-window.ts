import type { ports } from "@portico/core";

/** Only the provider knows its tokenizer. A token is about four characters of JSON, usually slightly less. */
const CHARACTERS_PER_TOKEN = 3.5;
/** Estimated tokens of an image or a file, whatever its size in base64. */
const MEDIA_TOKENS = 1600;

/** Estimated tokens of messages. */
export function estimateTokens(messages: readonly ports.ConversationMessage[]): number {
  let tokens = 0;
  for (const { parts } of messages) {
    for (const part of parts) tokens += part.type === "media" ? MEDIA_TOKENS : JSON.stringify(part).length / CHARACTERS_PER_TOKEN;
  }
  return Math.ceil(tokens);
}

/**
 * The newest whole turns of a conversation that fit next to the current turn. A turn begins with the user's message and is kept
 * or left out as a whole, so that every tool result has its call.
 */
export function fitHistory(history: readonly ports.ConversationMessage[], budget: number): readonly ports.ConversationMessage[] {
  let left = budget;
  let from = history.length;
  for (let end = history.length; end > 0; end = from) {
    let begin = end - 1;
    while (begin > 0 && history[begin]!.role !== "user") begin--;
    left -= estimateTokens(history.slice(begin, end));
    if (left < 0 || history[begin]!.role !== "user") break;
    from = begin;
  }
  return history.slice(from);
}

/** A tool's result. Its text is cut to this many characters, with a note. */
export function cutResult(result: ports.ToolResult, most: number): ports.ToolResult {
  let left = most;
  let isCut = false;
  const content = result.content.flatMap((part): ports.ToolContent[] => {
    if (part.type !== "text") return [part];
    const text = part.text.slice(0, left);
    if (text.length < part.text.length) isCut = true;
    left -= text.length;
    return text === "" && part.text !== "" ? [] : [{ type: "text", text }];
  });
  if (!isCut) return result;
  const length = result.content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  return {
    ...result,
    content: [...content, { type: "text", text: `[The result was cut: ${most} of ${length} characters are shown.]` }],
  };
}
