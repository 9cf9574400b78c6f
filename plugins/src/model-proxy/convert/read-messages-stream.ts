import { MessagesAnswer } from "./answer/messages-answer.ts";
import { createStreamReader } from "./answer/stream-reader.ts";
import type { StreamReader } from "./stream.ts";

/** Reads the event stream of an upstream that speaks Messages. */
export function readMessagesStream(): StreamReader {
  return createStreamReader((emit) => new MessagesAnswer(emit));
}
