import type { EndedRequest } from "./request-record.ts";

/** The instrumentation scope of all spans and metrics. */
export const SCOPE = "portico";

const METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "DELETE",
  "CONNECT",
  "OPTIONS",
  "TRACE",
  "PATCH",
  "QUERY",
]);

/** A method as an attribute. A caller can invent any number of other methods, and each would be a separate time series. */
export function httpMethod(method: string): string {
  return METHODS.has(method) ? method : "_OTHER";
}

/**
 * The status and error of a request whose caller left before the end of its answer. The status is 499 if it left before the
 * answer began.
 */
export const CALLER_LEFT = { status: 499, error: "caller_left" } as const;

/** The same of a model call: for a client every refusal is a failure, and so is an answer that its caller did not wait for. */
export function callErrorType(ended: Pick<EndedRequest, "status" | "error">): string | undefined {
  if (ended.status === CALLER_LEFT.status) return CALLER_LEFT.error;
  return errorType(ended) ?? (ended.status >= 400 ? String(ended.status) : undefined);
}

/** The value of `error.type`: the area's error code, or the status of a server error without a code. */
export function errorType({ status, error }: Pick<EndedRequest, "status" | "error">): string | undefined {
  return error ?? (status >= 500 ? String(status) : undefined);
}
