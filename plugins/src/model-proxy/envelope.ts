import { type Envelope, errorBody, isJsonObject, type ModelErrorKind, type ServiceError } from "@portico/core/contract";
import type { Protocol } from "./protocol.ts";

/**
 * Errors in the caller's protocol, which the path determines, so that each protocol's client library raises its typed error. The body of
 * an authentication error is the same on every endpoint (specification 7.1).
 */
export const proxyEnvelope: Envelope = (error, at) => {
  const protocol = error.code === "authentication_error" ? "messages" : protocolOf(at.path);
  const field = typeof error.details["field"] === "string" ? error.details["field"] : undefined;
  const details = isJsonObject(error.details["details"]) ? error.details["details"] : undefined;
  // Neither protocol has a kind for a misdirected request. Where the form has a code, the code shows it.
  const code = error.status === MISDIRECTED ? error.code : undefined;
  return errorBody(protocol, { kind: kindOf(error), message: error.message, param: field, details, code });
};

const MISDIRECTED = 421;

/** The management calls belong to the agent service and use its form of errors: a code, and optional details. */
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
