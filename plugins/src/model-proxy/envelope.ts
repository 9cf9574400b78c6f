import type { Envelope, ServiceError } from "@portico/core/contract";
import { errorBody } from "./convert/errors.ts";
import { isJsonObject } from "./convert/json.ts";
import type { ModelErrorKind } from "./convert/model-events.ts";
import type { Protocol } from "./protocol.ts";

/**
 * Errors in the caller's protocol, told by the path, so that each protocol's own client library raises its own typed error. The body of
 * an authentication error is the same on every endpoint (specification 7.1).
 */
export const proxyEnvelope: Envelope = (error, at) => {
  const protocol = error.code === "authentication_error" ? "messages" : protocolOf(at.path);
  const field = typeof error.details["field"] === "string" ? error.details["field"] : undefined;
  const details = isJsonObject(error.details["details"]) ? error.details["details"] : undefined;
  // A misdirected request has no kind in either protocol; where there is room for a code, it tells.
  const code = error.status === MISDIRECTED ? error.code : undefined;
  return errorBody(protocol, { kind: kindOf(error), message: error.message, param: field, details, code });
};

const MISDIRECTED = 421;

/** The management calls stand on the agent service and speak its way: a code, and details where there are any. */
export const managementEnvelope: Envelope = (error) => {
  const hasDetails = Object.keys(error.details).length > 0;
  return { error: error.code, message: error.message, ...(hasDetails && { details: error.details }) };
};

function protocolOf(path: string): Protocol {
  return path === "/v1/chat" || path.startsWith("/v1/chat/") ? "chat-completions" : "messages";
}

function kindOf(error: ServiceError): ModelErrorKind {
  switch (error.status) {
    case 401:
      return "authentication";
    case 404:
      return "not-found";
    case 408:
    case 504:
      return "timeout";
    case 413:
      return "too-large";
    case 502:
    case 508:
      return "upstream";
    default:
      return error.status >= 500 ? "internal" : "invalid-request";
  }
}
