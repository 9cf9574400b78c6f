import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { parseJson } from "../read-upstream-error.ts";

/** A reasoning item that a provider needs back, without its text. */
export interface ReasoningMark {
  readonly id: string;
  /** Undefined for open reasoning: its text is sent back instead. */
  readonly encrypted?: string | undefined;
  /**
   * The message that followed the item. A provider may refuse reasoning before a message without its id (OpenHands/software-agent-sdk#1754),
   * and models work worse without its phase (earendil-works/pi#1819).
   */
  readonly message?: { readonly id: string; readonly phase?: string | undefined } | undefined;
}

const PREFIX = "responses:";

/**
 * A reasoning item as the signature of a thinking block, or as redacted data: callers of Messages return both unchanged. `owner` names the
 * provider that can read it.
 */
export function writeReasoningMark(mark: ReasoningMark, owner: string): string {
  return `${PREFIX}${owner}:${JSON.stringify(mark)}`;
}

/** Undefined for a signature of another provider, which this one would refuse (openai/codex#8145, anomalyco/opencode#48773). */
export function readReasoningMark(signature: string, owner: string): ReasoningMark | undefined {
  const start = `${PREFIX}${owner}:`;
  const mark = signature.startsWith(start) ? parseJson(signature.slice(start.length)) : undefined;
  if (!isJsonObject(mark) || typeof mark.id !== "string" || mark.id === "") return undefined;
  return {
    id: mark.id,
    encrypted: textOr(mark.encrypted),
    message: isJsonObject(mark.message) ? messageOf(mark.message) : undefined,
  };
}

function messageOf({ id, phase }: JsonObject): ReasoningMark["message"] {
  return typeof id === "string" && id !== "" ? { id, phase: textOr(phase) } : undefined;
}

function textOr(value: Json | undefined): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
