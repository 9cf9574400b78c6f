import type { ModelEvent, StreamReader } from "../../../core/src/model-protocols/model-events.ts";
import { readChatStream, readMessagesStream } from "../../../core/src/model-protocols/read-answer.ts";
import { writeChatStream } from "../../../core/src/model-protocols/write-chat-stream.ts";
import { writeMessagesStream } from "../../../core/src/model-protocols/write-messages-stream.ts";
import { assertChatStream, assertMessagesStream } from "../../harness/stream-grammar.ts";

export const DONE = "data: [DONE]\n\n";
export const FINISHED = { type: "finish", reason: "end" } as const;
export const CUT: ModelEvent = {
  type: "error",
  error: { kind: "upstream", message: "The provider's stream ended before its answer was complete.", isUnreadable: true },
};

/** One server-sent event of Chat Completions. */
export function data(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A chunk with one delta, as an upstream sends it. */
export function chunk(delta: unknown, finishReason: string | null = null, rest: object = {}): string {
  return data({
    id: "chatcmpl-up",
    object: "chat.completion.chunk",
    created: 1,
    model: "up-model",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...rest,
  });
}

/** A chunk with deltas of tool calls. */
export function toolChunk(...calls: readonly object[]): string {
  return chunk({ tool_calls: calls });
}

/** One server-sent event of Messages. */
export function message(type: string, fields: object = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

/** The events of a Chat Completions stream; whatever they are, both writers must obey their grammar with them. */
export function readChat(...pieces: readonly string[]): readonly ModelEvent[] {
  return readAll(readChatStream(), [bytes(pieces.join(""))]);
}

/** The events of a Messages stream; whatever they are, both writers must obey their grammar with them. */
export function readMessages(...pieces: readonly string[]): readonly ModelEvent[] {
  return readAll(readMessagesStream(), [bytes(pieces.join(""))]);
}

/** Reads chunks to the end and proves that what both writers make of the events is grammatical. */
export function readAll(reader: StreamReader, chunks: readonly Uint8Array[]): readonly ModelEvent[] {
  const events = [...chunks.flatMap((each) => reader.push(each)), ...reader.end()];
  messagesText(events);
  chatText(events);
  return events;
}

/** The Messages stream of these events, proved to be grammatical. */
export function messagesText(events: readonly ModelEvent[]): string {
  const text = writeMessagesStream({ id: "msg_1", model: "asked-model" }).write(events);
  assertMessagesStream(text);
  return text;
}

/** The Chat Completions stream of these events, proved to be grammatical. */
export function chatText(events: readonly ModelEvent[], includeUsage = true): string {
  const text = writeChatStream({ id: "chatcmpl-1", model: "asked-model", created: 1700000000, includeUsage }).write(events);
  assertChatStream(text);
  return text;
}

/** The events without `start`, the pieces of one text, thinking or call put together: what an answer says, not how it was cut. */
export function said(events: readonly ModelEvent[]): readonly ModelEvent[] {
  const out: ModelEvent[] = [];
  for (const event of events) {
    const last = out.at(-1);
    if (event.type === "start") continue;
    if (last?.type === event.type && "text" in event && "text" in last)
      out[out.length - 1] = { ...event, text: last.text + event.text };
    else if (last?.type === "tool-arguments" && event.type === "tool-arguments" && last.call === event.call) {
      out[out.length - 1] = { ...event, json: last.json + event.json };
    } else out.push(event);
  }
  return out;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
