import { JsonPieces, type ports } from "@portico/core";
import { HISTORY_CHARACTERS, HISTORY_MESSAGES } from "../limits.ts";
import { messageStream, type StoredMessage } from "./conversations.ts";

/** Earlier turns for the next one, oldest first: as many of the newest as fit, each whole. */
export async function readHistory(
  log: ports.EventLog,
  conversationId: string,
  signal: AbortSignal,
): Promise<readonly Pick<StoredMessage, "role" | "parts">[]> {
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

/** A page of messages that ends before `before`, or with the newest; in the order in which they were written, one at a time. */
export async function readMessages(
  log: ports.EventLog,
  conversationId: string,
  { before, limit, signal }: { readonly before: number | undefined; readonly limit: number; readonly signal: AbortSignal },
): Promise<JsonPieces> {
  const stream = messageStream(conversationId);
  const total = await log.count(stream);
  const last = Math.min(before === undefined ? total : before - 1, total);
  const first = Math.max(last - limit, 0) + 1;
  const count = Math.max(last - first + 1, 0);
  const head = { conversationId, ...(count > 0 && first > 1 && { before: first }) };
  return new JsonPieces(
    (async function* () {
      yield `${JSON.stringify(head).slice(0, -1)},"messages":[`;
      let shown = 0;
      if (count > 0) {
        for await (const entry of log.read(stream, { from: first, limit: count, signal })) {
          const message = readMessage(entry);
          if (!message) continue;
          const { turnId: _turnId, ...rest } = message;
          yield (shown++ > 0 ? "," : "") + JSON.stringify({ sequence: entry.sequence, ...rest });
        }
      }
      yield `],"skipped":${count - shown}}`;
    })(),
  );
}

/** Undefined for what is damaged, or no message. */
function readMessage(entry: ports.LogEntry): StoredMessage | undefined {
  if (entry.damaged) return undefined;
  const message = entry.entry as unknown as StoredMessage;
  return Array.isArray(message.parts) && typeof message.role === "string" ? message : undefined;
}
