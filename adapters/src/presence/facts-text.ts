import { toJsonText } from "../engine/work-text.ts";

/** The port's rule for facts of a socket, and the facts as JSON. Throws TypeError, without the facts. */
export function toFactsText(facts: object): string {
  const text = toJsonText("The facts of a socket", facts);
  if (!text?.startsWith("{")) throw new TypeError("The facts of a socket must be a JSON object");
  return text;
}
