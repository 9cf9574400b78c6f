import { ConversionRefused } from "../conversion-refused.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { isAbsent, readArray, readString } from "./read-field.ts";

/** Maximum number in Chat Completions. */
const CHAT_STOPS = 4;

/** @throws ConversionRefused for more sequences than Chat Completions accepts, because leaving one out could make the answer longer. */
export function stopSequencesToChat(body: JsonObject, chat: JsonObjectDraft): void {
  const stops = readStops(body.stop_sequences, "stop_sequences");
  if (stops.length > CHAT_STOPS) throw new ConversionRefused("stop_sequences", `this provider takes at most ${CHAT_STOPS}`);
  if (stops.length > 0) chat.stop = stops;
}

/** @throws ConversionRefused for a sequence of only whitespace, which Messages refuses. */
export function stopSequencesToMessages(body: JsonObject, messages: JsonObjectDraft): void {
  const stops = readStops(typeof body.stop === "string" ? [body.stop] : body.stop, "stop");
  if (stops.some((stop) => stop.trim() === "")) {
    throw new ConversionRefused("stop", "this provider takes no stop sequence of whitespace alone");
  }
  if (stops.length > 0) messages.stop_sequences = stops;
}

/** An empty string has no effect, so it is left out. */
function readStops(value: Json | undefined, path: string): readonly string[] {
  if (isAbsent(value)) return [];
  return readArray(value, path)
    .map((stop, index) => readString(stop, `${path}.${index}`))
    .filter((stop) => stop !== "");
}
