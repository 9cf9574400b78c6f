import type { IncomingMessage } from "node:http";
import type { Ids } from "../ports/ids.ts";

/** Headers of an answer by their lowercase names. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

/** Logged status of a caller who left before an answer. Never sent. */
export const CALLER_LEFT = 499;

/** The names of one request. */
export interface RequestIds {
  /** Unique. Log lines contain it. */
  readonly own: string;
  /** The caller's `x-request-id`, if it is accepted. */
  readonly ofCaller: string | undefined;
}

/** The ids that proxies and client libraries make: a UUID, 32 hex digits, or a short name. */
const ACCEPTED = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * The caller's `x-request-id`, if it is 1-128 letters, digits, dots, underscores and hyphens. Undefined otherwise. It is only a
 * name for logs: callers may send the same id many times, so the app never uses it to find or allow anything.
 */
export function acceptedRequestId(header: string | undefined): string | undefined {
  return header !== undefined && ACCEPTED.test(header) ? header : undefined;
}

/** The ids of a request with this `x-request-id`. */
export function requestIds(header: string | undefined, ids: Ids): RequestIds {
  return { own: ids.id("req_"), ofCaller: acceptedRequestId(header) };
}

/** The headers of every answer. A caller that sent no accepted id gets the app's own one in both. */
export function idHeaders({ own, ofCaller }: RequestIds): {
  readonly "x-request-id": string;
  readonly "x-portico-request-id": string;
} {
  return { "x-request-id": ofCaller ?? own, "x-portico-request-id": own };
}

/** For the answer to an upgrade, which no log line names: the accepted `x-request-id` of its request, or nothing. */
export function callerIdHeader({ headers }: Pick<IncomingMessage, "headers">): Readonly<Record<string, string>> {
  const header = headers["x-request-id"];
  const id = acceptedRequestId(typeof header === "string" ? header : undefined);
  return id === undefined ? {} : { "x-request-id": id };
}

/** Headers of every answer with a body. Browsers then trust the content type, and never guess a script or a page. */
export const NO_SNIFFING = { "x-content-type-options": "nosniff" };

/**
 * Headers of every JSON answer. Answers are not cached: they are current, belong to one caller, and some hold a secret that is
 * shown once.
 */
export const JSON_HEADERS = { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...NO_SNIFFING };

/**
 * Headers of a Node answer, where one name may have several values, for a fetch answer. Throws a TypeError for an invalid header.
 */
export function webHeaders(headers: AnswerHeaders): Headers {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === "string" ? [value] : value) web.append(name, one);
  }
  return web;
}

/**
 * The response with additional headers. The headers of a handler's Response can be immutable, as with `fetch` and
 * `Response.redirect`.
 */
export function withHeaders(response: Response, added: AnswerHeaders): Response {
  try {
    put(response.headers, added);
    return response;
  } catch {
    const headers = put(new Headers(response.headers), added);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

function put(headers: Headers, added: AnswerHeaders): Headers {
  for (const [name, value] of Object.entries(added)) {
    if (typeof value === "string") headers.set(name, value);
    else for (const one of value) headers.append(name, one);
  }
  return headers;
}
