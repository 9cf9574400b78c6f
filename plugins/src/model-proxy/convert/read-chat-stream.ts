import { ChatAnswer } from "./answer/chat-answer.ts";
import { createStreamReader } from "./answer/stream-reader.ts";
import type { StreamReader } from "./stream.ts";

/** Reads the event stream of an upstream that speaks Chat Completions, with the known deviations of vendors. */
export function readChatStream(): StreamReader {
  return createStreamReader((emit) => new ChatAnswer(emit));
}
