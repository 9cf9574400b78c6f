import type { ports } from "@portico/core";
import type { OwnCredentials } from "./own-credentials.ts";

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Meant for one connection only (RFC 9110, 7.6.1), together with those that the Connection header names. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The caller's credentials, cookies and addresses, and headers that the upstream call sets itself. */
const NEVER_SENT = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "authorization",
  "x-api-key",
  "api-key",
  "x-goog-api-key",
  "x-agent-service-token",
  "x-workflow-service-token",
  "x-execution-grant",
  "cookie",
  "origin",
  "referer",
  "forwarded",
  "via",
  "x-real-ip",
  "x-service-provider-id",
]);

/** The upstream's connection, cookies, credentials and addresses, and orders that programs on the way to the caller would obey. */
const NEVER_RETURNED = new Set([
  ...HOP_BY_HOP,
  "set-cookie",
  "set-cookie2",
  "www-authenticate",
  "location",
  "content-location",
  "alt-svc",
  "strict-transport-security",
  "via",
  // Orders to web servers in front of the proxy.
  "x-sendfile",
  "x-lighttpd-send-file",
  "x-litespeed-location",
  "x-reproxy-url",
  // Orders to browsers, for the origin of the proxy.
  "accept-ch",
  "clear-site-data",
  "expect-ct",
  "nel",
  "origin-trial",
  "public-key-pins",
  "public-key-pins-report-only",
  "refresh",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-login",
  "sourcemap",
  "speculation-rules",
  "use-as-dictionary",
  "x-sourcemap",
]);

/** nginx obeys `X-Accel-*`. CORS is about the proxy's own origin, and `X-Portico-*` about the proxy's own answer. */
const NEVER_RETURNED_BEGINNINGS = /^(?:x-accel-|access-control-|x-portico-)/;

/** Headers that describe a body. They are removed if the proxy replaces the body. */
const OF_THE_BODY = new Set([
  "content-length",
  "content-encoding",
  "content-type",
  "content-disposition",
  "content-md5",
  "digest",
  "etag",
  "last-modified",
  "accept-ranges",
]);

/** In a converted call, only these headers have the same meaning for an upstream of the other protocol. */
const ALWAYS_MEANT = new Set(["traceparent", "tracestate", "baggage", "user-agent"]);

const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** The caller's headers for an upstream of the same protocol: all except those above, and those that contain a credential of Portico. */
export function requestHeaders(headers: Headers, own: OwnCredentials): Record<string, string> {
  const named = namedByConnection(headers);
  const kept: Record<string, string> = {};
  for (const name in headers) {
    if (NEVER_SENT.has(name) || named?.has(name) || name.startsWith("x-forwarded-") || name.startsWith("x-portico-")) continue;
    const value = headers[name];
    const text = typeof value === "string" ? value : value?.join(", ");
    if (text !== undefined && !own.isIn(text)) kept[name] = text;
  }
  return kept;
}

/** The headers of a converted call. The proxy writes the body, and the caller's protocol headers have no meaning for the upstream. */
export function convertedRequestHeaders(headers: Headers, own: OwnCredentials, isStream: boolean): Record<string, string> {
  const all = requestHeaders(headers, own);
  const kept = Object.fromEntries(Object.entries(all).filter(([name]) => ALWAYS_MEANT.has(name)));
  return {
    ...kept,
    "content-type": "application/json",
    accept: isStream ? "text/event-stream" : "application/json",
    "accept-encoding": "identity",
  };
}

/** The query for the upstream: the caller's unchanged query, without parameters that contain a credential of Portico. */
export function requestQuery(search: string, own: OwnCredentials): string {
  if (search === "") return "";
  const parameters = search.slice(1).split("&");
  const kept = parameters.filter((parameter) => !isCredentialIn(parameter, own));
  if (kept.length === parameters.length) return search;
  return kept.length > 0 ? `?${kept.join("&")}` : "";
}

/** Decodes the value, because upstreams decode it, too: an escaped credential must also be found. */
function isCredentialIn(parameter: string, own: OwnCredentials): boolean {
  if (own.isIn(parameter)) return true;
  for (const [name, value] of new URLSearchParams(parameter)) if (own.isIn(name) || own.isIn(value)) return true;
  return false;
}

/** The upstream's headers for the caller if the body is forwarded unchanged. Values with the upstream's address or credential are left out. */
export function answerHeaders(
  answer: Headers,
  provider: Pick<ports.ModelProvider, "redact">,
): Record<string, string | readonly string[]> {
  const named = namedByConnection(answer);
  const kept: Record<string, string | readonly string[]> = {};
  for (const name in answer) {
    if (NEVER_RETURNED.has(name) || NEVER_RETURNED_BEGINNINGS.test(name) || named?.has(name)) continue;
    const value = answer[name];
    if (value === undefined) continue;
    const isHonest = typeof value === "string" ? isShown(value, provider) : value.every((each) => isShown(each, provider));
    if (isHonest) kept[name] = value;
  }
  return kept;
}

/** The upstream's headers for the caller if the proxy writes the body: request ids, rate limits, the time to retry. */
export function convertedAnswerHeaders(
  answer: Headers,
  provider: Pick<ports.ModelProvider, "redact">,
): Record<string, string | readonly string[]> {
  const all = answerHeaders(answer, provider);
  return Object.fromEntries(Object.entries(all).filter(([name]) => isKeptWithOwnBody(name)));
}

/** Maximum characters of the header's value: names that a provider made do not fill the head of an answer. */
const DROPPED_LENGTH = 4_096;

/** The header that names the fields of a request that were left out. Names come from adapters: those that are unsafe in a header are left out. */
export function droppedHeader(fields: readonly string[]): Record<string, string> {
  const names = [...new Set(fields)].filter((name) => /^(?:[\w.$-]{1,128}|\(other\))$/.test(name)).join(", ");
  return names === "" ? {} : { "x-portico-dropped": names.slice(0, DROPPED_LENGTH) };
}

/** Whether a value does not reveal the provider and is valid in a header (RFC 9110, 5.5). */
function isShown(value: string, provider: Pick<ports.ModelProvider, "redact">): boolean {
  return provider.redact(value) === value && !UNSENDABLE.test(value);
}

function isKeptWithOwnBody(name: string): boolean {
  if (OF_THE_BODY.has(name)) return false;
  return name.includes("ratelimit") || name.startsWith("retry-after") || name.endsWith("request-id") || name === "x-should-retry";
}

/** Headers that Connection names, except those that describe the body, which no hop may remove (RFC 9110, 7.6.1). */
function namedByConnection(headers: Headers): Set<string> | undefined {
  const value = headers["connection"];
  if (value === undefined || value === "keep-alive" || value === "close") return undefined;
  const text = typeof value === "string" ? value : value.join(",");
  return new Set(
    text
      .toLowerCase()
      .split(",")
      .map((name) => name.trim())
      .filter((name) => !OF_THE_BODY.has(name)),
  );
}
