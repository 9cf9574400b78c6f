import type { ModelProtocol } from "../ports/models.ts";
import type { JsonObject } from "./json.ts";
import type { ModelError, ModelErrorKind, ModelEvent } from "./model-events.ts";

interface ChatError {
  readonly type: string;
  /** The code if the provider gave no code. */
  readonly code: string | null;
}

const CHAT: Readonly<Record<ModelErrorKind, ChatError>> = {
  "invalid-request": { type: "invalid_request_error", code: null },
  authentication: { type: "authentication_error", code: "invalid_api_key" },
  permission: { type: "permission_error", code: null },
  billing: { type: "insufficient_quota", code: "insufficient_quota" },
  "not-found": { type: "not_found_error", code: null },
  "too-large": { type: "invalid_request_error", code: "request_too_large" },
  "rate-limit": { type: "rate_limit_error", code: "rate_limit_exceeded" },
  timeout: { type: "server_error", code: "timeout" },
  overloaded: { type: "server_error", code: "overloaded" },
  upstream: { type: "server_error", code: "upstream_error" },
  internal: { type: "server_error", code: null },
};

const MESSAGES: Readonly<Record<ModelErrorKind, string>> = {
  "invalid-request": "invalid_request_error",
  authentication: "authentication_error",
  permission: "permission_error",
  billing: "billing_error",
  "not-found": "not_found_error",
  "too-large": "request_too_large",
  "rate-limit": "rate_limit_error",
  timeout: "timeout_error",
  overloaded: "overloaded_error",
  upstream: "api_error",
  internal: "api_error",
};

const STATUS: Readonly<Record<ModelErrorKind, number>> = {
  "invalid-request": 400,
  authentication: 401,
  billing: 402,
  permission: 403,
  "not-found": 404,
  "too-large": 413,
  "rate-limit": 429,
  internal: 500,
  upstream: 502,
  overloaded: 503,
  timeout: 504,
};

/** An error event for an invalid or incomplete answer of the provider. */
export function upstreamFailure(message: string): ModelEvent {
  return { type: "error", error: { kind: "upstream", message, isUnreadable: true } };
}

/**
 * The status for an error without a status, such as an error inside an answer of status 200. Messages has a special status for
 * overload.
 */
export function errorStatus(protocol: ModelProtocol, kind: ModelErrorKind): number {
  return protocol === "messages" && kind === "overloaded" ? 529 : STATUS[kind];
}

/** The body of an error response in the caller's protocol, with the `type` names that its client libraries look for. */
export function errorBody(protocol: ModelProtocol, error: ModelError): JsonObject {
  if (protocol === "messages") {
    const details = error.details && { details: error.details };
    return { type: "error", error: { type: MESSAGES[error.kind], message: error.message, ...details } };
  }
  const { type, code } = CHAT[error.kind];
  return { error: { message: error.message, type, param: error.param ?? null, code: error.code ?? code } };
}

/** The event that ends a broken stream in the caller's protocol; no end marker may follow it. */
export function streamErrorEvent(protocol: ModelProtocol, error: ModelError): string {
  const data = JSON.stringify(errorBody(protocol, error));
  return protocol === "messages" ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`;
}
