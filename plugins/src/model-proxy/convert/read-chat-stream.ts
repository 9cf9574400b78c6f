import { ChatAnswer } from "./answer/chat-answer.ts";
import { createStreamReader } from "./answer/stream-reader.ts";
import type { StreamReader } from "./stream.ts";

/** Reads the event stream of an upstream that speaks Chat Completions, as the vendors of that format really send it. */
export function readChatStream(): StreamReader {
  return createStreamReader((emit) => new ChatAnswer(emit));
}
