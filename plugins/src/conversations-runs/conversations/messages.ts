import { JsonPieces, type ports } from "@portico/core";
import { HISTORY_CHARACTERS, HISTORY_MESSAGES } from "../limits.ts";
import { messageStream, type StoredMessage } from "./conversations.ts";
import type { StoredSummary } from "../turns/turn.ts";

/** A message of earlier turns. */
export interface EarlierMessage extends Pick<StoredMessage, "role" | "parts"> {
  /** Its sequence number in the conversation. A summary has that of the last message that it replaces. */
  readonly sequence: number;
}

/**
 * Earlier turns for the next one, oldest first: as many of the newest as fit, each whole. They begin with the newest summary of the conversation,
 * if there is one, followed by what it does not stand for.
 */
export async function readHistory(
  log: ports.EventLog,
  conversationId: string,
  signal: AbortSignal,
): Promise<readonly EarlierMessage[]> {
  const newest: EarlierMessage[] = [];
  let characters = 0;
  let summary: StoredSummary | undefined;
  for await (const entry of log.read(messageStream(conversationId), { backwards: true, limit: HISTORY_MESSAGES, signal })) {
    const message = readMessage(entry);
    if (!message) continue;
    if (summary && entry.sequence <= summary.upTo) break;
    const found = summaryOf(message);
    if (found) {
      // Older summaries are part of the newest.
      summary ??= found;
      continue;
    }
    characters += JSON.stringify(message.parts).length;
    if (characters > HISTORY_CHARACTERS) break;
    newest.push({ role: message.role, parts: message.parts, sequence: entry.sequence });
  }
  const oldestFirst = newest.reverse();
  // A turn that is only partly included would begin with an answer without a question.
  const first = oldestFirst.findIndex(({ role }) => role === "user");
  const turns = first < 0 ? [] : oldestFirst.slice(first);
  return summary ? [{ role: "user", parts: [summary], sequence: summary.upTo }, ...turns] : turns;
}

function summaryOf({ parts }: StoredMessage): StoredSummary | undefined {
  const [part] = parts;
  return part?.type === "summary" && Number.isSafeInteger(part.upTo) ? part : undefined;
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

/** The message of an entry. Undefined if it is damaged or not a message. */
export function readMessage(entry: ports.LogEntry): StoredMessage | undefined {
  if (entry.damaged) return undefined;
  const message = entry.entry as unknown as StoredMessage;
  return Array.isArray(message.parts) && typeof message.role === "string" ? message : undefined;
}
