import { gatherEvents } from "../answer/answer-reader.ts";
import type { JsonObject } from "../json.ts";
import type { ModelEvent, StreamReader } from "../model-events.ts";
import { createStreamReader } from "../read-answer.ts";
import { ResponsesAnswer } from "./responses-answer.ts";

/** Reads a whole answer of OpenAI's Responses API. An error, or an answer without output, ends with an `error` event. */
export function readResponse(body: JsonObject, owner: string): readonly ModelEvent[] {
  const gathered = gatherEvents();
  gathered.attempt(() => new ResponsesAnswer(gathered.emit, owner).readWhole(body));
  return gathered.drain();
}

/** Reads the event stream of OpenAI's Responses API. `owner` as in `requestToResponses`. */
export function readResponsesStream(owner: string): StreamReader {
  return createStreamReader((emit) => new ResponsesAnswer(emit, owner));
}
