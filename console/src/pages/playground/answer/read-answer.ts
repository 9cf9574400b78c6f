import { EventSourceParserStream } from "eventsource-parser/stream";
import { PageFailure } from "../../../api/page-failure.ts";
import { readChatChunk, readCompletion } from "./chat-answer.ts";
import type { Protocol } from "../conversation.ts";
import type { ArrivingAnswer } from "./arriving-answer.ts";
import { readMessage, readMessagesEvent } from "./messages-answer.ts";

/**
 * Adds an answer's events to it as they arrive, and calls `arrived` after each. Throws the stream's own error. Also throws if the stream
 * ends without the mark of a normal end: status 200 and a started answer do not prove success (specification 4.1).
 */
export async function readStream(
  protocol: Protocol,
  body: ReadableStream<BufferSource>,
  into: ArrivingAnswer,
  arrived: () => void,
): Promise<void> {
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data) as AnyEvent;
    if (event.error) throw new PageFailure(event.error.message ?? "The stream failed");
    if (event.type === "message_stop") return;
    if (protocol === "messages") readMessagesEvent(event, into);
    else readChatChunk(event, into);
    arrived();
  }
  // Some providers of Chat Completions do not send the end marker.
  if (protocol === "messages" || into.stopReason === undefined)
    throw new PageFailure("The stream ended before the answer was complete");
}

type AnyEvent = Parameters<typeof readMessagesEvent>[0] &
  Parameters<typeof readChatChunk>[0] & { readonly error?: { readonly message?: string } };

/** Adds a whole answer. */
export function readWhole(protocol: Protocol, answer: object, into: ArrivingAnswer): void {
  if (protocol === "messages") readMessage(answer, into);
  else readCompletion(answer, into);
}
