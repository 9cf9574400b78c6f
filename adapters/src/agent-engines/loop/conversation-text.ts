import type { ports } from "@portico/core";

/** Characters of one result of a tool, and of the arguments of one call. */
const RESULT_CHARACTERS = 2000;
const ARGUMENTS_CHARACTERS = 1000;

/**
 * A conversation as text, for a model that reads about it. If it has more than `most` characters, the oldest messages after an earlier summary
 * are left out, with a note.
 */
export function conversationText(messages: readonly ports.ConversationMessage[], most: number): string {
  const texts = messages.map(messageText).filter((text) => text !== "");
  const hasSummary = messages[0]?.parts[0]?.type === "summary";
  const head = hasSummary ? texts.slice(0, 1) : [];
  let left = most - head.join("").length;
  const tail: string[] = [];
  for (const text of texts.slice(head.length).toReversed()) {
    left -= text.length;
    if (left < 0 && tail.length > 0) break;
    tail.unshift(left < 0 ? text.slice(0, Math.max(text.length + left, 0)).toWellFormed() : text);
  }
  const isWhole = head.length + tail.length === texts.length;
  return [...head, ...(isWhole ? [] : ["[earlier messages are left out]"]), ...tail].join("\n\n");
}

function messageText({ role, parts }: ports.ConversationMessage): string {
  return parts.flatMap((part) => partText(role, part)).join("\n");
}

function partText(role: ports.ConversationMessage["role"], part: ports.MessagePart): string[] {
  switch (part.type) {
    case "text":
      return [`${role === "user" ? "User" : "Agent"}: ${part.text}`];
    case "summary":
      return [`Summary of what came before: ${part.text}`];
    case "media":
      return [`User: [a file, ${part.mediaType}, ${JSON.stringify(part.name ?? "")}]`];
    case "tool_call":
      return [`Agent calls ${part.name}: ${cut(JSON.stringify(part.arguments) ?? "", ARGUMENTS_CHARACTERS)}`];
    case "tool_result": {
      const texts = part.result.content.map((each) => (each.type === "text" ? each.text : `[an image, ${each.mimeType}]`));
      return [`${part.name} ${part.result.isError ? "fails" : "answers"}: ${cut(texts.join("\n"), RESULT_CHARACTERS)}`];
    }
    case "thinking":
      return [];
  }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}… [cut]`;
}
