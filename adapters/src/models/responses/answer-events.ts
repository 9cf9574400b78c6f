import type { Readable } from "node:stream";
import { passStream, type ports } from "@portico/core";
import {
  createDecoder,
  type JsonObject,
  type ModelEvent,
  type ModelEvents,
  readEitherForm,
  readResponse,
  readResponsesStream,
} from "@portico/core/model-protocols";

/**
 * The events of an answer of the Responses API, a stream or a whole response: its first byte tells. `owner` as in the request. Ends with the
 * answer, and lets go of its body when `signal` aborts.
 */
export async function* answerEvents(answer: ports.ModelAnswer, owner: string, signal: AbortSignal): ModelEvents {
  const leave = () => void answer.body.destroy();
  signal.addEventListener("abort", leave, { once: true });
  const forms = {
    stream: () => readResponsesStream(owner),
    whole: (body: JsonObject) => readResponse(body, owner),
  };
  const reader = readEitherForm(forms, answer.headers);
  try {
    for await (const chunk of decoded(answer) as AsyncIterable<Uint8Array>) {
      const events = reader.push(chunk);
      if (events.length > 0) yield events;
      if (isLast(events.at(-1))) return;
    }
    yield reader.end();
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function decoded(answer: ports.ModelAnswer): Readable {
  const decoder = createDecoder(answer.headers["content-encoding"]);
  return decoder ? passStream(answer.body, decoder) : answer.body;
}

function isLast(event: ModelEvent | undefined): boolean {
  return event?.type === "finish" || event?.type === "error";
}
