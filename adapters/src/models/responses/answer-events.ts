import type { Readable } from "node:stream";
import { passStream, type ports } from "@portico/core";
import { createDecoder } from "@portico/core/model-protocols";
import {
  isJsonObject,
  type ModelEvent,
  type ModelEvents,
  parseExactly,
  readResponse,
  readResponsesStream,
  type StreamReader,
  upstreamFailure,
} from "@portico/core/model-protocols";

/** Bytes of a whole answer. */
const ANSWER_BYTES = 64 * 1024 * 1024;
/** Bytes of an error that are read. */
const ERROR_BYTES = 1024 * 1024;
const OPEN_BRACE = 0x7b;
const BLANK: ReadonlySet<number> = new Set(Buffer.from(" \t\r\n\uFEFF"));
/** Leaves out a byte order mark. */
const TEXT = new TextDecoder();

/**
 * The events of an answer of the Responses API, a stream or a whole response: its first byte tells. `owner` as in the request. Ends with the
 * answer, and lets go of its body when `signal` aborts.
 */
export async function* answerEvents(answer: ports.ModelAnswer, owner: string, signal: AbortSignal): ModelEvents {
  const leave = () => void answer.body.destroy();
  signal.addEventListener("abort", leave, { once: true });
  let reader: StreamReader | undefined;
  try {
    for await (const chunk of decoded(answer) as AsyncIterable<Uint8Array>) {
      const first = reader ? undefined : chunk.find((byte) => !BLANK.has(byte));
      if (first !== undefined) reader = first === OPEN_BRACE ? wholeReader(owner) : readResponsesStream(owner);
      const events = reader?.push(chunk) ?? [];
      if (events.length > 0) yield events;
      if (isLast(events.at(-1))) return;
    }
    yield (reader ?? readResponsesStream(owner)).end();
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** The text of an error answer, up to a limit. A body that cannot be read counts as empty. */
export async function readErrorText(answer: ports.ModelAnswer, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of decoded(answer) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, ERROR_BYTES - size));
      size += chunk.length;
      if (size >= ERROR_BYTES) break;
    }
  } catch {
    signal.throwIfAborted();
    return "";
  } finally {
    answer.body.destroy();
  }
  return TEXT.decode(Buffer.concat(chunks));
}

function decoded(answer: ports.ModelAnswer): Readable {
  const decoder = createDecoder(answer.headers["content-encoding"]);
  return decoder ? passStream(answer.body, decoder) : answer.body;
}

function wholeReader(owner: string): StreamReader {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return {
    push(chunk) {
      size += chunk.length;
      if (size > ANSWER_BYTES) return [upstreamFailure("The provider's answer is too long")];
      chunks.push(chunk);
      return [];
    },
    end: () => parseWhole(Buffer.concat(chunks), owner),
  };
}

function parseWhole(bytes: Uint8Array, owner: string): readonly ModelEvent[] {
  try {
    const body: unknown = parseExactly(TEXT.decode(bytes));
    if (isJsonObject(body)) return readResponse(body, owner);
  } catch {
    // The answer is not JSON. It is not quoted, because it may contain any data.
  }
  return [upstreamFailure("The provider sent an invalid answer")];
}

function isLast(event: ModelEvent | undefined): boolean {
  return event?.type === "finish" || event?.type === "error";
}
