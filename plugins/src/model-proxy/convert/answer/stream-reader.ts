import { createParser } from "eventsource-parser";
import { upstreamFailure } from "../errors.ts";
import { parseExactly } from "../exact-json.ts";
import { isJsonObject } from "../json.ts";
import type { StreamReader } from "../stream.ts";
import { type AnswerReader, type Emit, gatherEvents } from "./answer-reader.ts";

/** Maximum characters of a line and of an event of a stream, so that an upstream cannot fill the memory. */
export const STREAM_EVENT_CHARACTERS = 16 * 1024 * 1024;

/**
 * Reads a stream. Both protocols share this part: bytes to text, text to server-sent events, data to JSON, and the end.
 * `createAnswer` receives the function that takes the answer's events, and returns the reader of its protocol.
 */
export function createStreamReader(createAnswer: (emit: Emit) => AnswerReader): StreamReader {
  const decoder = new TextDecoder();
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
      gathered.attempt(() => parser.feed(decoder.decode(chunk, { stream: true })));
      return gathered.drain();
    },
    end() {
      if (gathered.over || ended) return [];
      ended = true;
      // The last event counts even if the blank line after it is missing.
      gathered.attempt(() => parser.feed(`${decoder.decode()}\n\n`));
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
