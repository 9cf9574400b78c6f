import type { InferOutput } from "valibot";
import type { Faults } from "../error.ts";
import { hasMoreLevels } from "../json-levels.ts";
import { parseJson } from "../parse-json.ts";
import type { Schema } from "../route.ts";
import { fault, parse } from "./pipeline.ts";

/** Maximum nesting of lists and objects in a body. Later code may recurse, and may add levels of its own. */
const BODY_LEVELS = 512;

/**
 * Parses the text of a body with the contract's `body` schema, as is done with every body. For handlers that take their body as
 * text first. Throws the contract's own `invalid_json` for invalid JSON, such as `""` and undefined. Throws its `invalid_request`
 * for a value that does not fit, or nests deeper than 512 levels. Large whole numbers become texts, as `parseJson` says.
 */
export function parseJsonBody<S extends Schema>(
  contract: { readonly body: S; readonly faults?: Faults | undefined },
  text: string | undefined,
): InferOutput<S> {
  const value = parseText(text, contract.faults);
  // Each level needs at least two characters: most bodies are too short to be too deep.
  if (text!.length > 2 * BODY_LEVELS && hasMoreLevels(value, BODY_LEVELS)) {
    const issues = [`body: expected at most ${BODY_LEVELS} levels of lists and objects`];
    throw fault(contract.faults, "invalid_request", { details: { issues } });
  }
  return parse(contract.body, value, contract.faults) as InferOutput<S>;
}

function parseText(text: string | undefined, own: Faults | undefined): unknown {
  if (text === undefined) throw fault(own, "invalid_json");
  try {
    return parseJson(text);
  } catch {
    // The parser's message quotes the text, which may hold secrets. It is neither shown nor kept as the cause.
    throw fault(own, "invalid_json");
  }
}
