import type { InferOutput } from "valibot";
import type { Faults } from "../error.ts";
import type { Schema } from "../route.ts";
import { fault, parse } from "./pipeline.ts";

/**
 * The text of a body as its contract's `body` has it: what is done with every body, for handlers that take theirs as text first. Throws the
 * contract's own `invalid_json` for what is no JSON, such as `""` and undefined, and its `invalid_request` for what does not fit.
 */
export function parseJsonBody<S extends Schema>(
  contract: { readonly body: S; readonly faults?: Faults | undefined },
  text: string | undefined,
): InferOutput<S> {
  return parse(contract.body, parseJson(text, contract.faults), contract.faults) as InferOutput<S>;
}

function parseJson(text: string | undefined, own: Faults | undefined): unknown {
  if (text === undefined) throw fault(own, "invalid_json");
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which may hold secrets: it is neither shown nor kept as the cause.
    throw fault(own, "invalid_json");
  }
}
