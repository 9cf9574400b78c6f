import type { Protocol } from "../protocol.ts";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import type { ModelError, ModelErrorKind } from "./model-events.ts";
import { errorIn, faultPathIn, parseJson, plainSentence, sentenceIn } from "./upstream-sentence.ts";

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
export function readUpstreamError(protocol: Protocol, status: number, body: string | undefined): ModelError {
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
export function readErrorValue(protocol: Protocol, value: Json, status?: number): ModelError {
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
