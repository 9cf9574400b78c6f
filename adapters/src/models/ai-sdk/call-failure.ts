import { ports } from "@portico/core";
import { isJsonObject, ModelRefusal, type ModelErrorKind, readUpstreamError } from "@portico/core/model-protocols";
import { retryAfterOf } from "../http/retry-after.ts";

type Headers = ports.ModelAnswer["headers"];

/** Kinds of the SDK's errors that are known before a call is sent, with messages that contain no values. */
const BEFORE: Readonly<Record<string, ModelErrorKind>> = {
  AI_LoadAPIKeyError: "authentication",
  AI_LoadSettingError: "authentication",
  AI_InvalidArgumentError: "invalid-request",
  AI_InvalidPromptError: "invalid-request",
  AI_UnsupportedFunctionalityError: "invalid-request",
  AI_NoSuchModelError: "not-found",
};

/** Errors about an answer. Their messages quote it. */
const INVALID_ANSWER: ReadonlySet<string> = new Set([
  "AI_EmptyResponseBodyError",
  "AI_InvalidResponseDataError",
  "AI_JSONParseError",
  "AI_NoContentGeneratedError",
  "AI_TypeValidationError",
]);

/**
 * The error of the port, or a refusal, for an error of the SDK, found by its name, because the package that the user installs brings its own classes.
 * The SDK's own error is no cause: it contains the request.
 */
export function callFailure(error: unknown, id: string, clock: ports.Clock): unknown {
  if (!(error instanceof Error)) return streamFailure(error);
  const { name } = error;
  if (name === "AI_RetryError" && "lastError" in error) return callFailure(error.lastError, id, clock);
  if (name === "AI_APICallError") return refusalOf(error, id, clock);
  if (INVALID_ANSWER.has(name)) return new ModelRefusal("upstream", `Provider "${id}" sent an invalid answer`);
  const kind = BEFORE[name];
  return kind ? new ModelRefusal(kind, error.message) : error;
}

function refusalOf(error: Error, id: string, clock: ports.Clock): Error {
  const { statusCode, responseBody, responseHeaders } = error as {
    readonly statusCode?: unknown;
    readonly responseBody?: unknown;
    readonly responseHeaders?: unknown;
  };
  if (typeof statusCode !== "number") return new ports.ModelUnreachable(`Provider "${id}" cannot be reached`);
  // A 200 whose body the SDK could not read.
  if (statusCode < 400) return new ModelRefusal("upstream", `Provider "${id}" sent an invalid answer`);
  const body = typeof responseBody === "string" ? responseBody : undefined;
  const { kind, message } = readUpstreamError("chat-completions", statusCode, body);
  const retryAfterMs = retryAfterOf(isJsonObject(responseHeaders) ? (responseHeaders as Headers) : {}, clock.now(), body);
  return new ModelRefusal(kind, message, { status: statusCode, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}

/** Errors in a stream are what the service sent. */
function streamFailure(error: unknown): Error {
  const { kind, message } = readUpstreamError("chat-completions", 502, JSON.stringify(error ?? ""));
  return new ModelRefusal(kind, message);
}
