import type { ModelAnswer, ModelProtocol } from "../ports/models.ts";
import { upstreamFailure } from "./errors.ts";
import { isJsonObject, type JsonObject, parseExactly } from "./json.ts";
import type { ModelEvent, StreamReader } from "./model-events.ts";
import { readChatCompletion, readChatStream, readMessage, readMessagesStream } from "./read-answer.ts";

/** Bytes of a whole answer that is read. */
export const ANSWER_BYTES = 64 * 1024 * 1024;

const BLANK: ReadonlySet<number> = new Set(Buffer.from(" \t\r\n\uFEFF"));
/** The first bytes of `data:`, `event:`, `id:`, `retry:` and of comments. */
const FIELD_STARTS: ReadonlySet<number> = new Set(Buffer.from("deir:"));
const OPEN_BRACE = 0x7b;
/** Leaves out a byte order mark. */
const TEXT = new TextDecoder();

/** How one protocol reads its two forms of answers. */
export interface AnswerForms {
  stream(): StreamReader;
  whole(body: JsonObject): readonly ModelEvent[];
}

const MESSAGES: AnswerForms = { stream: readMessagesStream, whole: readMessage };
const CHAT: AnswerForms = { stream: readChatStream, whole: readChatCompletion };

/** Reads the body of an answer that arrives in pieces: a stream or a whole answer, whichever the upstream was asked for. */
export function readAnyAnswer(protocol: ModelProtocol, headers: ModelAnswer["headers"]): StreamReader {
  return readEitherForm(protocol === "messages" ? MESSAGES : CHAT, headers);
}

/**
 * Reads a stream or a whole answer. The first byte of the body tells more than its content type: gateways send streams as `application/json`
 * or `text/plain`, and whole answers as `text/event-stream`.
 */
export function readEitherForm(forms: AnswerForms, headers: ModelAnswer["headers"]): StreamReader {
  const isNamedStream = isEventStream(headers);
  const readerOf = (isStream: boolean) => (isStream ? forms.stream() : wholeReader(forms));
  let reader: StreamReader | undefined;
  return {
    push(chunk) {
      const first = reader ? undefined : firstByte(chunk);
      if (first !== undefined) reader = readerOf(isNamedStream ? first !== OPEN_BRACE : FIELD_STARTS.has(first));
      return reader ? reader.push(chunk) : [];
    },
    end: () => (reader ?? readerOf(isNamedStream)).end(),
  };
}

/** Reads the bytes of an answer, if they are a whole answer. Undefined for the bytes of a stream. */
export function readWholeAnswer(protocol: ModelProtocol, bytes: Uint8Array): readonly ModelEvent[] | undefined {
  return firstByte(bytes) === OPEN_BRACE ? parseWhole(protocol === "messages" ? MESSAGES : CHAT, bytes) : undefined;
}

/** Undefined if the chunk has only white space. */
function firstByte(chunk: Uint8Array): number | undefined {
  return chunk.find((byte) => !BLANK.has(byte));
}

function wholeReader(forms: AnswerForms): StreamReader {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return {
    push(chunk) {
      size += chunk.length;
      if (size > ANSWER_BYTES) return [upstreamFailure("The provider's answer is too long")];
      chunks.push(chunk);
      return [];
    },
    end: () => parseWhole(forms, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
  };
}

function parseWhole(forms: AnswerForms, bytes: Uint8Array): readonly ModelEvent[] {
  try {
    const body: unknown = parseExactly(TEXT.decode(bytes));
    if (isJsonObject(body)) return forms.whole(body);
  } catch {
    // The upstream's answer is not JSON. It is not quoted, because it may contain any data.
  }
  return [upstreamFailure("The provider sent an invalid answer")];
}

function isEventStream(headers: ModelAnswer["headers"]): boolean {
  const type = headers["content-type"];
  return typeof type === "string" && type.toLowerCase().startsWith("text/event-stream");
}
