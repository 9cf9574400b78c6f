import { type Exchange, ports, type ServiceError } from "@portico/core";
import { errorBody, isJsonObject, readErrorText, readUpstreamError, retryDelayIn } from "@portico/core/model-protocols";
import { proxyErrors } from "./errors.ts";
import { convertedAnswerHeaders } from "./header-filter.ts";
import type { Protocol } from "./protocol.ts";

/**
 * Send an upstream's error to the caller: its status, request id, rate limits and time to retry, and its message in the caller's
 * protocol, without the provider's credential and address (open points 2). A redirect becomes 502.
 */
export async function relayError(call: {
  readonly protocol: Protocol;
  readonly provider: ports.ModelProvider;
  readonly exchange: Exchange;
  readonly answer: ports.ModelAnswer;
  /** The text of the answer, if it was read. */
  readonly text?: string | undefined;
}): Promise<void> {
  const { protocol, provider, exchange, answer } = call;
  if (answer.status < 400) {
    answer.body.destroy();
    throw proxyErrors.upstream_invalid(`The provider answered with status ${answer.status}`);
  }
  const text = provider.redact(call.text ?? (await readErrorText(answer)));
  const body =
    sameProtocolBody(call, text) ??
    JSON.stringify(errorBody(protocol, readUpstreamError(provider.protocol, answer.status, text || undefined)));
  const headers = { ...retryAfterIn(text), ...convertedAnswerHeaders(answer.headers, provider) };
  const out = exchange.respond(answer.status, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
  });
  out.end(body);
}

/** The wait in an error whose vendor has no header for it: client libraries read only the header. */
function retryAfterIn(text: string): Record<string, string> {
  const ms = retryDelayIn(text);
  return ms === undefined ? {} : { "retry-after": String(Math.ceil(ms / 1_000)) };
}

/** Translates the port's errors into the proxy's errors. Other errors are thrown unchanged. */
export function callFailure(error: unknown): never {
  throw toProxyError(error);
}

function toProxyError(error: unknown): ServiceError | unknown {
  if (error instanceof ports.ModelTimeout) return proxyErrors.upstream_timeout(error.message, undefined, error);
  if (error instanceof ports.ModelUnreachable) return proxyErrors.upstream_unreachable(error.message, undefined, error);
  return error;
}

/** An error that is already in the caller's protocol keeps every field that its provider gave it. */
function sameProtocolBody(
  { protocol, provider }: { protocol: Protocol; provider: ports.ModelProvider },
  text: string,
): string | undefined {
  if (protocol !== provider.protocol) return undefined;
  try {
    const body: unknown = JSON.parse(text);
    if (!isJsonObject(body) || !isJsonObject(body["error"])) return undefined;
    // Only Messages has `"type": "error"` at top level. Some upstreams send errors in the form of the wrong protocol.
    const isComplete = typeof body["error"]["message"] === "string" && (body["type"] === "error") === (protocol === "messages");
    return isComplete ? text : undefined;
  } catch {
    return undefined;
  }
}
