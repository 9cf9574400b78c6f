import { JsonPieces, type ports } from "@portico/core";
import { HISTORY_CHARACTERS, HISTORY_MESSAGES } from "../limits.ts";
import { chosenBranch, type Jump, type MessageRange, newestOf, pathOf, siblingsOn } from "./branches.ts";
import { messageStream, type StoredMessage } from "./conversations.ts";
import type { StoredSummary } from "../turns/turn.ts";

/** A message of earlier turns. */
export interface EarlierMessage extends Pick<StoredMessage, "role" | "parts"> {
  /** Its sequence number in the conversation. A summary has that of the last message that it replaces. */
  readonly sequence: number;
}

/**
 * Earlier turns for the next one, oldest first: as many of the newest as fit, each whole. They begin with the newest summary of the chosen branch,
 * if there is one, followed by what it does not stand for.
 */
export async function readHistory(
  log: ports.EventLog,
  { conversationId, jumps }: { readonly conversationId: string; readonly jumps: readonly Jump[] },
  signal: AbortSignal,
): Promise<readonly EarlierMessage[]> {
  const newest: EarlierMessage[] = [];
  let characters = 0;
  let summary: StoredSummary | undefined;
  for await (const entry of readBackwards(log, conversationId, jumps, signal)) {
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

/** The newest messages of the chosen branch, the newest first. */
async function* readBackwards(
  log: ports.EventLog,
  conversationId: string,
  jumps: readonly Jump[],
  signal: AbortSignal,
): AsyncGenerator<ports.LogEntry, void> {
  const stream = messageStream(conversationId);
  // Without jumps, the messages need not be counted.
  const path = jumps.length === 0 ? [undefined] : pathOf(jumps, chosenBranch(jumps), await log.count(stream))!;
  let left = HISTORY_MESSAGES;
  for (const range of path) {
    const limit = range ? Math.min(left, range.last - range.first + 1) : left;
    if (limit === 0) return;
    yield* log.read(stream, { backwards: true, limit, signal, ...(range && { from: range.last }) });
    left -= limit;
  }
}

function summaryOf({ parts }: StoredMessage): StoredSummary | undefined {
  const [part] = parts;
  return part?.type === "summary" && Number.isSafeInteger(part.upTo) ? part : undefined;
}

/** Which messages of a conversation are read. */
interface MessagePage {
  readonly before: number | undefined;
  readonly limit: number;
  readonly jumps: readonly Jump[];
  readonly branch: number;
  readonly signal: AbortSignal;
}

/**
 * A page of a branch's messages that ends before `before`, or with the newest; in the order in which they were written, one at a time. Undefined if
 * there is no such branch.
 */
export async function readMessages(
  log: ports.EventLog,
  conversationId: string,
  { before, limit, jumps, branch, signal }: MessagePage,
): Promise<JsonPieces | undefined> {
  const stream = messageStream(conversationId);
  const total = await log.count(stream);
  const path = pathOf(jumps, branch, total);
  if (!path) return undefined;
  const { ranges, hasOlder } = newestOf(path, { last: before === undefined ? total : before - 1, limit });
  const head = { conversationId, branch, ...(hasOlder && { before: ranges[0]!.first }) };
  const siblings = new Map(siblingsOn(jumps, branch, total).map(({ sequence, ...rest }) => [sequence, rest]));
  return new JsonPieces(
    (async function* () {
      yield `${JSON.stringify(head).slice(0, -1)},"messages":[`;
      let count = 0;
      let shown = 0;
      const branches: object[] = [];
      for await (const entry of readRanges(log, stream, ranges, signal)) {
        count++;
        const message = readMessage(entry);
        if (!message) continue;
        const { turnId: _turnId, ...rest } = message;
        const among = siblings.get(entry.sequence);
        if (among) branches.push({ messageId: message.id, sequence: entry.sequence, ...among });
        yield (shown++ > 0 ? "," : "") + JSON.stringify({ sequence: entry.sequence, ...rest });
      }
      yield `],"branches":${JSON.stringify(branches)},"skipped":${count - shown}}`;
    })(),
  );
}

async function* readRanges(
  log: ports.EventLog,
  stream: string,
  ranges: readonly MessageRange[],
  signal: AbortSignal,
): AsyncGenerator<ports.LogEntry, void> {
  for (const { first, last } of ranges) yield* log.read(stream, { from: first, limit: last - first + 1, signal });
}

/** A message that a turn began with, and where it is. */
export interface Question {
  readonly sequence: number;
  readonly message: StoredMessage;
}

/**
 * Where a new branch begins that replaces this message of a user, or makes this answer again. Only the newest messages of all branches are searched.
 */
export async function findQuestion(
  log: ports.EventLog,
  conversationId: string,
  wanted: { readonly replaces: string } | { readonly regenerates: string },
  signal: AbortSignal,
): Promise<Question | "missing" | "wrong kind"> {
  const messageId = "replaces" in wanted ? wanted.replaces : wanted.regenerates;
  let answer: StoredMessage | undefined;
  for await (const entry of log.read(messageStream(conversationId), { backwards: true, limit: HISTORY_MESSAGES, signal })) {
    const message = readMessage(entry);
    if (!message) continue;
    const { role, turnId } = message;
    const isQuestion = role === "user" && !message.steers;
    if (answer && isQuestion && turnId === answer.turnId) return { sequence: entry.sequence, message };
    if (answer || message.id !== messageId) continue;
    if ("replaces" in wanted) return isQuestion ? { sequence: entry.sequence, message } : "wrong kind";
    if (role !== "assistant" || summaryOf(message)) return "wrong kind";
    answer = message;
  }
  return "missing";
}

/** The message of an entry. Undefined if it is damaged or not a message. */
export function readMessage(entry: ports.LogEntry): StoredMessage | undefined {
  if (entry.damaged) return undefined;
  const message = entry.entry as unknown as StoredMessage;
  return Array.isArray(message.parts) && typeof message.role === "string" ? message : undefined;
}
