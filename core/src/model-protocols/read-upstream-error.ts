import type { ModelProtocol } from "../ports/models.ts";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import type { ModelError, ModelErrorKind } from "./model-events.ts";

/**
 * Codes and types that decide the kind without the status: those of both protocols and of their vendors, in lower case.
 */
const NAMED: ReadonlyMap<string, ModelErrorKind> = new Map<string, ModelErrorKind>([
  ["authentication_error", "authentication"],
  ["invalid_api_key", "authentication"],
  ["invalid_authentication", "authentication"],
  ["unauthenticated", "authentication"],
  ["unauthorized", "authentication"],
  ["permission_error", "permission"],
  ["permission_denied", "permission"],
  ["access_denied", "permission"],
  ["billing_error", "billing"],
  ["insufficient_quota", "billing"],
  ["insufficient_balance", "billing"],
  ["billing_hard_limit_reached", "billing"],
  ["not_found_error", "not-found"],
  ["not_found", "not-found"],
  ["model_not_found", "not-found"],
  ["request_too_large", "too-large"],
  ["rate_limit_error", "rate-limit"],
  ["rate_limit_exceeded", "rate-limit"],
  ["resource_exhausted", "rate-limit"],
  ["timeout_error", "timeout"],
  ["timeout", "timeout"],
  ["deadline_exceeded", "timeout"],
  ["overloaded_error", "overloaded"],
  ["overloaded", "overloaded"],
  ["unavailable", "overloaded"],
]);

/** Names that many kinds share. They decide only if there is no status. */
const VAGUE: ReadonlyMap<string, ModelErrorKind> = new Map<string, ModelErrorKind>([
  ["invalid_request_error", "invalid-request"],
  ["invalid_argument", "invalid-request"],
  ["context_length_exceeded", "invalid-request"],
]);

/** Statuses with a specific kind. `kindOfStatus` decides the other statuses by their class (4xx, 5xx). */
const STATUSES: ReadonlyMap<number, ModelErrorKind> = new Map<number, ModelErrorKind>([
  [401, "authentication"],
  [402, "billing"],
  [403, "permission"],
  [404, "not-found"],
  [408, "timeout"],
  [413, "too-large"],
  [429, "rate-limit"],
  [503, "overloaded"],
  [504, "timeout"],
  [529, "overloaded"],
]);

/**
 * Reads the error response of an upstream of `protocol`. It tries the shape of that protocol first, then other known shapes. The upstream's
 * message is kept up to `ERROR_MESSAGE_CHARACTERS`. HTML pages are not kept. The caller must remove credentials and addresses from the
 * message.
 */
export function readUpstreamError(protocol: ModelProtocol, status: number, body: string | undefined): ModelError {
  const text = body?.trim() ?? "";
  const value = parseJson(text);
  if (value !== undefined && typeof value !== "string") return readErrorValue(protocol, value, status);
  const sentence = value ?? text;
  return {
    kind: kindOfStatus(status),
    message: plainSentence(sentence) ?? `The provider answered with status ${status} and ${described(text)}.`,
  };
}

/** Reads an error object from an answer or a stream, or, with `status`, from an error response. */
export function readErrorValue(protocol: ModelProtocol, value: Json, status?: number): ModelError {
  const error = errorIn(value);
  const type = name(error.type);
  const code = name(error.code) ?? detailCode(error) ?? name(error.status);
  // A status inside the body is more precise than the 200 of the stream.
  const kind = kindOf([type, code], status ?? statusIn(error));
  const message =
    sentenceIn(error) ??
    (status === undefined ? "The provider reported an error." : `The provider answered with status ${status}.`);
  const param = protocol === "chat-completions" ? (name(error.param) ?? name(faultPathIn(error))) : undefined;
  return { kind, message, ...(code !== undefined && { code }), ...(param !== undefined && { param }) };
}

function kindOf(names: readonly (string | undefined)[], status: number | undefined): ModelErrorKind {
  const lower = names.flatMap((each) => (each === undefined ? [] : [each.toLowerCase()]));
  for (const each of lower) {
    const named = NAMED.get(each);
    if (named !== undefined) return named;
  }
  if (status !== undefined) return kindOfStatus(status);
  for (const each of lower) {
    const vague = VAGUE.get(each);
    if (vague !== undefined) return vague;
  }
  return "upstream";
}

function kindOfStatus(status: number): ModelErrorKind {
  return STATUSES.get(status) ?? (status >= 400 && status < 500 ? "invalid-request" : "upstream");
}

function detailCode(error: JsonObject): string | undefined {
  return isJsonObject(error.details) ? name(error.details.error_code) : undefined;
}

/** Vendors send the HTTP status in `code` or `status`, as a number or as a string of digits. */
function statusIn(error: JsonObject): number | undefined {
  const status = Number(error.code ?? error.status);
  return Number.isInteger(status) && status >= 400 && status < 600 ? status : undefined;
}

/** A machine-readable name. It must be one short word, so that no text of the answer becomes a code. */
function name(value: Json | undefined): string | undefined {
  return typeof value === "string" && /^[\w.[\]:-]{1,128}$/.test(value) ? value : undefined;
}

function described(text: string): string {
  return text === "" ? "no body" : "a page instead of an error";
}

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
  if (isFailedBase(outer.base_resp)) return errorOfBase(outer.base_resp);
  if (isJsonObject(outer.error)) return outer.error;
  return typeof outer.error === "string" ? { type: outer.type, code: outer.code, message: outer.message ?? outer.error } : outer;
}

/** MiniMax's status beside an answer of status 200 (infiniflow/ragflow#17292). 0 is success. */
export function isFailedBase(base: Json | undefined): base is JsonObject {
  return isJsonObject(base) && typeof base.status_code === "number" && base.status_code !== 0;
}

/** platform.minimax.io/docs, Error codes. */
const BASE_CODES: ReadonlyMap<Json | undefined, string> = new Map([
  [1001, "timeout"],
  [1002, "rate_limit_exceeded"],
  [1004, "invalid_api_key"],
  [1008, "insufficient_balance"],
  [1039, "rate_limit_exceeded"],
  [2013, "invalid_request_error"],
]);

function errorOfBase({ status_code: status, status_msg: message = null }: JsonObject): JsonObject {
  return { code: BASE_CODES.get(status) ?? String(status), message };
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

/** Larger bodies are no errors of this kind. */
const RETRY_INFO_CHARACTERS = 64 * 1024;

/** Milliseconds that Google asks to wait. It has no header for that, but `google.rpc.RetryInfo` in the error (googleapis/python-genai#1875). */
export function retryDelayIn(text: string): number | undefined {
  if (text.length > RETRY_INFO_CHARACTERS || !text.includes("retryDelay")) return undefined;
  const { details } = errorIn(parseJson(text) ?? "");
  const delays = (Array.isArray(details) ? (details as readonly Json[]) : []).flatMap((detail) => {
    const delay = isJsonObject(detail) ? detail.retryDelay : undefined;
    const seconds = typeof delay === "string" ? /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(delay)?.[1] : undefined;
    return seconds === undefined ? [] : [Math.ceil(Number(seconds) * 1_000)];
  });
  return delays[0];
}

/** The path of the first validation fault, for example `messages.0.content`. */
export function faultPathIn(error: JsonObject): string | undefined {
  const faults = faultsIn(error.detail) ?? faultsIn(isJsonObject(error.message) ? error.message.detail : error.message);
  return faults?.map(pathOf).find((path) => path !== "");
}

/** The text as a message, unless it is empty or markup. Messages of DashScope begin with `<400>` (cloudwego/eino#994). */
export function plainSentence(text: string): string | undefined {
  if (text === "" || /^<[!?/a-z]/i.test(text)) return undefined;
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
