import type { ports } from "@portico/core";

/** Only the provider knows its tokenizer. A token is about four characters of JSON, usually slightly less. */
export const CHARACTERS_PER_TOKEN = 3.5;
/** Estimated tokens of an image or a file, whatever its size in base64. */
const MEDIA_TOKENS = 1600;

/** Estimates of messages and parts that were made before: a long turn asks for them with each call. */
const known = new WeakMap<ports.MessagePart, number>();

/** Estimated tokens of messages. */
export function estimateTokens(messages: readonly ports.ConversationMessage[]): number {
  let tokens = 0;
  for (const { parts } of messages) for (const part of parts) tokens += tokensOf(part);
  return Math.ceil(tokens);
}

/** Estimated tokens of a text. */
export function estimateTextTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function tokensOf(part: ports.MessagePart): number {
  let tokens = known.get(part);
  if (tokens === undefined) {
    tokens = part.type === "media" ? MEDIA_TOKENS : part.type === "tool_result" ? resultTokens(part) : jsonTokens(part);
    known.set(part, tokens);
  }
  return tokens;
}

function resultTokens({ name, result }: Extract<ports.MessagePart, { type: "tool_result" }>): number {
  return result.content.reduce(
    (sum, part) => sum + (part.type === "text" ? jsonTokens(part.text) : MEDIA_TOKENS),
    jsonTokens(name),
  );
}

function jsonTokens(value: unknown): number {
  return JSON.stringify(value).length / CHARACTERS_PER_TOKEN;
}

/**
 * The turns of a conversation. A turn begins with the user's message, and is kept or left out as a whole, so that every tool result has its
 * call. Messages before the first user's message belong to no turn, and are left out.
 */
export function splitTurns(history: readonly ports.ConversationMessage[]): readonly (readonly ports.ConversationMessage[])[] {
  const turns: ports.ConversationMessage[][] = [];
  for (const message of history) {
    if (message.role === "user") turns.push([message]);
    else turns.at(-1)?.push(message);
  }
  return turns;
}

/** Whether a message is a summary of earlier messages. */
export function isSummary({ parts }: ports.ConversationMessage): boolean {
  return parts.some(({ type }) => type === "summary");
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
