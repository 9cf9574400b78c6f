import { toolCallLimit } from "./answer/answer-reader.ts";
import { upstreamFailure } from "./errors.ts";
import type { JsonObject } from "./json.ts";
import type { ModelEvent } from "./model-events.ts";

/** A whole call of a tool. Arguments are an object, or its JSON text. Without an `id`, the call gets one. */
export interface ToolCallPiece {
  readonly type: "tool-call";
  readonly id?: string;
  readonly name: string;
  readonly arguments: JsonObject | string;
}

/** Fields of the request that the provider left out. Told only if it comes before the first content. */
export interface DroppedPiece {
  readonly type: "dropped";
  /** Their names in the Messages protocol. */
  readonly fields: readonly string[];
}

/** A piece of an answer: a text, a whole call of a tool, or any event. */
export type AnswerPiece = string | ToolCallPiece | DroppedPiece | ModelEvent;

/**
 * The events of an answer in pieces. An answer that does not say how it finished ended normally. An answer without content is broken.
 * `drop` takes the names of fields that were left out.
 * @throws TypeError for a value that is not a piece; `id` names its provider.
 */
export async function* eventsOf(
  pieces: AsyncIterable<AnswerPiece>,
  id: string,
  drop: (fields: readonly string[]) => void,
): AsyncGenerator<ModelEvent> {
  let calls = 0;
  let hasContent = false;
  for await (const piece of pieces) {
    const event: Exclude<AnswerPiece, string> = typeof piece === "string" ? { type: "text", text: piece } : piece;
    if (typeof event?.type !== "string")
      throw new TypeError(`Provider "${id}" yielded a piece that is neither a text nor an event`);
    if (event.type === "dropped") {
      drop(event.fields);
      continue;
    }
    const tooMany = event.type === "tool-call" || event.type === "tool-start" ? toolCallLimit(calls) : undefined;
    if (tooMany !== undefined) return yield upstreamFailure(tooMany);
    if (!NO_CONTENT.has(event.type)) hasContent = true;
    if (event.type === "tool-call") {
      yield* wholeCall(event, calls++);
      continue;
    }
    if (event.type === "tool-start") calls = Math.max(calls, event.call) + 1;
    yield event;
    if (event.type === "finish" || event.type === "error") return;
  }
  yield hasContent
    ? { type: "finish", reason: calls > 0 ? "tool" : "end" }
    : upstreamFailure("The provider's answer has no content");
}

const NO_CONTENT: ReadonlySet<string> = new Set(["start", "usage"]);

function* wholeCall(piece: ToolCallPiece, call: number): Generator<ModelEvent> {
  yield { type: "tool-start", call, id: piece.id ?? "", name: piece.name };
  const json = typeof piece.arguments === "string" ? piece.arguments : JSON.stringify(piece.arguments);
  yield { type: "tool-arguments", call, json };
  yield { type: "tool-end", call };
}
