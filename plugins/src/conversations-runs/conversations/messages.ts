import type { ports } from "@portico/core";
import type { InferInput } from "valibot";
import type { conversationMessage } from "../contract.ts";
import { HISTORY_CHARACTERS, HISTORY_MESSAGES } from "../limits.ts";
import { messageStream, type StoredMessage } from "./conversations.ts";

/** Earlier turns for the next one, oldest first: as many of the newest as fit, each whole. */
export async function readHistory(
  log: ports.EventLog,
  conversationId: string,
  signal: AbortSignal,
): Promise<readonly ports.ConversationMessage[]> {
  const newest: StoredMessage[] = [];
  let characters = 0;
  for await (const entry of log.read(messageStream(conversationId), { backwards: true, limit: HISTORY_MESSAGES, signal })) {
    const message = readMessage(entry);
    if (!message) continue;
    characters += JSON.stringify(message.parts).length;
    if (characters > HISTORY_CHARACTERS) break;
    newest.push(message);
  }
  const oldestFirst = newest.reverse();
  // A turn that is only partly there would begin with an answer to nothing.
  const first = oldestFirst.findIndex(({ role }) => role === "user");
  return first < 0 ? [] : oldestFirst.slice(first).map(({ role, parts }) => ({ role, parts }));
}

/** A page of messages that ends before `before`, or with the newest; in the order in which they were written. */
export async function readMessages(
  log: ports.EventLog,
  conversationId: string,
  { before, limit, signal }: { readonly before: number | undefined; readonly limit: number; readonly signal: AbortSignal },
) {
  const messages: InferInput<typeof conversationMessage>[] = [];
  let [skipped, oldest] = [0, 1];
  if (before !== undefined && before <= 1) return { conversationId, messages, skipped };
  const from = before === undefined ? {} : { from: before - 1 };
  for await (const entry of log.read(messageStream(conversationId), { ...from, backwards: true, limit, signal })) {
    oldest = entry.sequence;
    const message = readMessage(entry);
    if (!message) {
      skipped++;
      continue;
    }
    const { turnId: _turnId, parts, ...shown } = message;
    messages.push({ sequence: entry.sequence, ...shown, parts: [...parts] });
  }
  return { conversationId, messages: messages.reverse(), skipped, ...(oldest > 1 && { before: oldest }) };
}

/** Undefined for what is damaged, or no message. */
function readMessage(entry: ports.LogEntry): StoredMessage | undefined {
  if (entry.damaged) return undefined;
  const message = entry.entry as unknown as StoredMessage;
  return Array.isArray(message.parts) && typeof message.role === "string" ? message : undefined;
}
