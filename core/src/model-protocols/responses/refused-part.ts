import type { ModelError } from "../model-events.ts";
import type { RefusedPart } from "./request-to-responses.ts";

/** The part of a request by the parameter that an error names. */
const PARAMETERS: ReadonlyMap<string, RefusedPart> = new Map<string, RefusedPart>([
  // "Encrypted content is not supported with this model": pydantic/pydantic-ai#2865.
  ["include", "include"],
  // "Your organization must be verified to generate reasoning summaries": BerriAI/litellm#16032.
  ["reasoning.summary", "reasoning.summary"],
  ["reasoning.effort", "reasoning"],
  ["reasoning", "reasoning"],
  ["temperature", "temperature"],
  ["top_p", "top_p"],
  ["safety_identifier", "safety_identifier"],
  // Wei-Shaw/sub2api#3954
  ["max_output_tokens", "max_output_tokens"],
]);

/** Codes of errors that say that a provider does not know or accept a parameter, and not that its value is wrong. */
const UNSUPPORTED: ReadonlySet<string> = new Set(["unsupported_parameter", "unsupported_value", "unknown_parameter"]);

/**
 * Reads which part of a Responses request an error refuses, if the request keeps its meaning without it. Encrypted reasoning is refused if
 * another organization or account sealed it (openai/codex#8145), if it was not stored (anomalyco/opencode#8987), or if it is no longer
 * beside what followed it (continuedev/continue#8933).
 */
export function refusedPart({ code, param, message }: ModelError): RefusedPart | undefined {
  if (code === "invalid_encrypted_content" || isOfReasoning(message)) return "encrypted-reasoning";
  const isUnsupported = UNSUPPORTED.has(code ?? "") || /\bunsupported\b|\bnot supported\b|\bunknown parameter\b/i.test(message);
  if (!isUnsupported && param !== "reasoning.summary") return undefined;
  // Some servers name it in their message alone: "Unsupported parameter: max_output_tokens".
  const named = param ?? /parameter:? ?['"]?([a-z_.]{1,40})/i.exec(message)?.[1] ?? "";
  return PARAMETERS.get(named);
}

function isOfReasoning(message: string): boolean {
  const isSealed = /\bencrypted[ _]content\b/i.test(message) && /could not be|not issued/i.test(message);
  const isLoose = /\bItem (?:with id )?'?(?:rs|msg|fc)_/.test(message) && /required|not found/.test(message);
  return isSealed || isLoose;
}
