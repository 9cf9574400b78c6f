import { isJsonObject, type Json, type JsonObject } from "./json.ts";

/** Maximum characters of an upstream's message that are kept. */
export const ERROR_MESSAGE_CHARACTERS = 2_000;

/** Maximum validation faults in one message. More faults usually have one cause. */
const FAULTS = 8;
/** Maximum depth of nested errors: an error may quote the error of a provider behind it, which may quote another. */
const QUOTED_DEPTH = 3;

/**
 * The object that describes an error. In both protocols it is the member `error`; otherwise it is the value itself. Some vendors wrap it in an array.
 */
export function errorIn(value: Json): JsonObject {
  const outer = Array.isArray(value) ? (value[0] as Json | undefined) : value;
  if (!isJsonObject(outer)) return typeof outer === "string" ? { message: outer } : {};
  if (isJsonObject(outer.error)) return outer.error;
  return typeof outer.error === "string" ? { type: outer.type, code: outer.code, message: outer.message ?? outer.error } : outer;
}

/**
 * The readable message of an error object. In addition to a plain sentence, the object may have lists of validation faults
 * (`{ loc, msg }`) in `detail` or in `message`, and the answer of the provider behind a gateway in `metadata.raw`. The `input` of such
 * faults, which repeats the request, is left out.
 */
export function sentenceIn(error: JsonObject, depth = QUOTED_DEPTH): string | undefined {
  const own =
    sentenceOf(error.message, depth) ??
    sentenceOf(error.detail, depth) ??
    sentenceOf(error.msg, depth) ??
    sentenceOf(error.error_description, depth);
  const raw = isJsonObject(error.metadata) ? sentenceOf(error.metadata.raw, depth) : undefined;
  if (own === undefined || raw === undefined || own.includes(raw)) return own ?? raw;
  return plainSentence(`${own}: ${raw}`);
}

/** The path of the first validation fault, for example `messages.0.content`. */
export function faultPathIn(error: JsonObject): string | undefined {
  const faults = faultsIn(error.detail) ?? faultsIn(isJsonObject(error.message) ? error.message.detail : error.message);
  return faults?.map(pathOf).find((path) => path !== "");
}

/** The text as a message, unless it is empty or markup. */
export function plainSentence(text: string): string | undefined {
  if (text === "" || text.startsWith("<")) return undefined;
  return text.length <= ERROR_MESSAGE_CHARACTERS ? text : text.slice(0, ERROR_MESSAGE_CHARACTERS).toWellFormed();
}

export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function sentenceOf(value: Json | undefined, depth: number): string | undefined {
  if (depth === 0) return undefined;
  const faults = faultsIn(value);
  if (faults) return plainSentence(faults.slice(0, FAULTS).map(faultSentence).join("; "));
  if (typeof value === "string") return sentenceOfText(value.trim(), depth);
  return isJsonObject(value) ? sentenceIn(errorIn(value), depth - 1) : undefined;
}

/** JSON text is a nested error, which an intermediate server quoted. */
function sentenceOfText(text: string, depth: number): string | undefined {
  const quoted = /^[[{]/.test(text) ? parseJson(text) : undefined;
  if (quoted === undefined) return plainSentence(text);
  const told = faultsIn(quoted) ? sentenceOf(quoted, depth) : sentenceIn(errorIn(quoted), depth - 1);
  return told ?? plainSentence(text);
}

/** The messages of a list of validation faults; undefined for any other value. */
function faultsIn(value: Json | undefined): readonly JsonObject[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const faults = (value as readonly Json[]).filter(
    (each): each is JsonObject => isJsonObject(each) && typeof each.msg === "string",
  );
  return faults.length > 0 ? faults : undefined;
}

function faultSentence(fault: JsonObject): string {
  const path = pathOf(fault);
  return path === "" ? String(fault.msg).trim() : `${path}: ${String(fault.msg).trim()}`;
}

/** Removes `body` from the path, because callers know only the fields. */
function pathOf({ loc }: JsonObject): string {
  const steps = Array.isArray(loc) ? (loc as readonly Json[]) : [];
  const fields = steps[0] === "body" ? steps.slice(1) : steps;
  return fields.filter((step) => typeof step === "string" || typeof step === "number").join(".");
}
