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

/** A method as an attribute: a caller can invent any number of others, and each would be a time series of its own. */
export function httpMethod(method: string): string {
  return METHODS.has(method) ? method : "_OTHER";
}

/** What `error.type` says: the area's error code, or the status of a server error that has none. */
export function errorType({ status, error }: Pick<EndedRequest, "status" | "error">): string | undefined {
  return error ?? (status >= 500 ? String(status) : undefined);
}
