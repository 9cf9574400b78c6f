import { createParser } from "eventsource-parser";
import { type AnswerReader, type Emit, gatherEvents } from "./answer/answer-reader.ts";
import { ChatAnswer } from "./answer/chat-answer.ts";
import { MessagesAnswer } from "./answer/messages-answer.ts";
import { upstreamFailure } from "./errors.ts";
import { isJsonObject, type JsonObject, parseExactly } from "./json.ts";
import { LinesOutside } from "./lines-outside.ts";
import type { ModelEvent, StreamReader } from "./model-events.ts";

/**
 * Reads the whole answer of an upstream that speaks Chat Completions. An error, or an answer without a message, ends with an
 * `error` event.
 */
export function readChatCompletion(body: JsonObject): readonly ModelEvent[] {
  const gathered = gatherEvents();
  gathered.attempt(() => new ChatAnswer(gathered.emit).readWhole(body));
  return gathered.drain();
}

/**
 * Reads the whole answer of an upstream that speaks Messages. An error, or an answer without content, ends with an `error` event.
 */
export function readMessage(body: JsonObject): readonly ModelEvent[] {
  const gathered = gatherEvents();
  gathered.attempt(() => new MessagesAnswer(gathered.emit).readWhole(body));
  return gathered.drain();
}

/** Reads the event stream of an upstream that speaks Chat Completions, with the known deviations of vendors. */
export function readChatStream(): StreamReader {
  return createStreamReader((emit) => new ChatAnswer(emit));
}

/** Reads the event stream of an upstream that speaks Messages. */
export function readMessagesStream(): StreamReader {
  return createStreamReader((emit) => new MessagesAnswer(emit));
}

/** Maximum characters of a line and of an event of a stream, so that an upstream cannot fill the memory. */
export const STREAM_EVENT_CHARACTERS = 16 * 1024 * 1024;

/**
 * Reads a stream. Both protocols share this part: bytes to text, text to server-sent events, data to JSON, and the end.
 * `createAnswer` receives the function that takes the answer's events, and returns the reader of its protocol.
 */
export function createStreamReader(createAnswer: (emit: Emit) => AnswerReader): StreamReader {
  const decoder = new TextDecoder();
  const lines = new LinesOutside();
  const gathered = gatherEvents();
  const answer = createAnswer(gathered.emit);
  let ended = false;

  const parser = createParser({
    maxBufferSize: STREAM_EVENT_CHARACTERS,
    onEvent({ event: name, data }) {
      // Some vendors keep the connection alive with events that carry no data.
      if (gathered.over || data === "") return;
      if (data.startsWith("[DONE]")) return answer.close(true);
      const value = parseJson(data);
      if (isJsonObject(value)) return answer.read(value, name);
      // A cut stream ends with an incomplete line. `close` decides whether the answer is an error, by whether it had finished.
      if (value !== undefined || ended || (name !== undefined && !answer.knows(name))) return;
      gathered.emit(upstreamFailure("The provider's stream contains an event that is not valid JSON."));
    },
    onError(error) {
      // Unknown fields and invalid retry values are also reported here. They are ignored.
      if (error.type !== "max-buffer-size-exceeded") return;
      gathered.emit(upstreamFailure("The provider's stream contains an event that is too large."));
    },
  });

  return {
    push(chunk) {
      if (gathered.over || ended) return [];
      gathered.attempt(() => parser.feed(lines.push(decoder.decode(chunk, { stream: true }))));
      return gathered.drain();
    },
    end() {
      if (gathered.over || ended) return [];
      ended = true;
      // The last event counts even if the blank line after it is missing.
      gathered.attempt(() => parser.feed(`${lines.push(decoder.decode())}${lines.end()}\n\n`));
      if (!gathered.over) answer.close(false);
      return gathered.drain();
    },
  };
}

/** The parsed value, or undefined for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}
