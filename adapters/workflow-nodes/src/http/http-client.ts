import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { openConnections } from "@portico/adapters/outbound/open-connections";
import type { OutboundOptions } from "@portico/adapters/outbound/outbound-options";
import type { Dispatcher } from "undici/index.js";
import { createAddressGuard } from "@portico/adapters/outbound/address-guard";
import { type Content, searchedText } from "./http-body.ts";
import { addressRefused, toFailure, unexpectedStatus } from "./http-failure.ts";
import { portOf } from "./http-input.ts";
import { type HttpAnswer, readAnswer, readFailedBody, type Saving } from "./read-answer.ts";
import { readUrl } from "./read-url.ts";

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  /** By lowercase name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Content | undefined;
  /** Statuses that are returned. A redirect with such a status is not followed. */
  isExpected(status: number): boolean;
  /** Whether a text contains a secret. Secrets are not sent to another server. */
  isSecret(text: string): boolean;
  /** What becomes of the body of an answer. */
  readonly saving: Saving;
}

/** All in milliseconds. */
export interface HttpTimeouts {
  /** Resolving, connecting, and TLS. */
  readonly connectMs: number;
  /** From the request's end to the answer's head. */
  readonly headersMs: number;
  /** Idle timeout within an answer. */
  readonly idleMs: number;
}

export interface HttpClient {
  /** Throws NodeFailed, or the signal's reason. */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer>;
  close(): Promise<void>;
}

const MOST_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Credentials are not forwarded on redirects to another server, also those that are written into the definition. */
const CREDENTIAL = /^cookie$|key|token|secret|auth|password|credential|signature/i;

export interface HttpClientOptions extends HttpTimeouts {
  /** In the form of the option of `httpNode`. */
  readonly allow: readonly string[];
  readonly lookup?: LookupFunction | undefined;
  readonly outbound?: OutboundOptions | undefined;
}

export function createHttpClient({ allow, connectMs, headersMs, idleMs, lookup, outbound }: HttpClientOptions): HttpClient {
  const guard = createAddressGuard(allow, lookup);
  const guarded = (origin: URL) => guard.lookup(portOf(origin));
  let opened: Promise<Dispatcher> | undefined;

  const ask = async (request: HttpRequest, signal: AbortSignal) => {
    const { url, method, headers, body } = request;
    if (guard.refuses(url.hostname, portOf(url)))
      throw addressRefused(`${url.origin} is an address that this instance's workflows may not reach`);
    // A proxy resolves names by itself, so those that this machine knows are checked here.
    if (outbound?.proxy) await guard.checkName(url.hostname, portOf(url));
    const agent = await (opened ??= openConnections({ outbound, lookup: guarded, connectMs, headersMs, idleMs }));
    const {
      statusCode,
      headers: received,
      body: stream,
    } = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: method as "GET",
      ...sent(headers, body),
      signal,
    });
    return { status: statusCode, headers: received, body: stream };
  };

  return {
    async send(first, signal) {
      signal.throwIfAborted();
      let request = first;
      for (let followed = 0; ; followed++) {
        const { origin } = request.url;
        try {
          const answer = await ask(request, signal);
          const location =
            REDIRECTS.has(answer.status) && !first.isExpected(answer.status) ? answer.headers["location"] : undefined;
          if (first.isExpected(answer.status)) {
            const { url } = request;
            return await readAnswer(answer, { url, hasBody: hasBody(request.method, answer.status), saving: first.saving });
          }
          if (typeof location !== "string") {
            const kept = hasBody(request.method, answer.status) ? await readFailedBody(answer, signal) : {};
            discard(answer);
            throw unexpectedStatus(origin, {
              status: answer.status,
              ...kept,
              retryAfterMs: retryAfter(answer.headers["retry-after"]),
            });
          }
          discard(answer);
          if (followed === MOST_REDIRECTS)
            throw unexpectedStatus(origin, { status: answer.status }, ` after ${MOST_REDIRECTS} redirects`);
          request = redirected(request, answer.status, location);
        } catch (error) {
          signal.throwIfAborted();
          throw toFailure(error, origin);
        }
      }
    },
    close: async () => (await opened)?.destroy(),
  };
}

/** A stream is sent with its length: a chunked body is refused by many servers. */
function sent(headers: HttpRequest["headers"], body: Content | undefined) {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) return { headers, body: body ?? null };
  return { headers: { ...headers, "content-length": String(body.size) }, body: body.open() };
}

function discard({ body }: { readonly body: Readable }): void {
  body.on("error", () => undefined).destroy();
}

/** The time that a `Retry-After` header asks for, in milliseconds: seconds, or a date. Undefined for any other text. */
function retryAfter(value: string | string[] | undefined): number | undefined {
  if (typeof value !== "string") return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** Headers may describe a body that is not sent. */
function hasBody(method: string, status: number): boolean {
  return method !== "HEAD" && status !== 204 && status !== 304;
}

/** The next request, by the rules of `fetch`. Throws NodeFailed for a forbidden target. */
function redirected(request: HttpRequest, status: number, location: string): HttpRequest {
  const { url: from, method } = request;
  const url = readUrl(location, from);
  if (typeof url === "string") throw addressRefused(`${from.origin} redirects to an address that may not be reached: ${url}`);
  if (from.protocol === "https:" && url.protocol === "http:") throw addressRefused(`${from.origin} redirects from https to http`);
  const becomesGet = status === 303 ? method !== "HEAD" && method !== "GET" : status < 303 && method === "POST";
  const isElsewhere = from.origin !== url.origin;
  if (isElsewhere && !becomesGet && request.body !== undefined && request.isSecret(searchedText(request.body)))
    throw addressRefused(`${from.origin} redirects a body that has a secret to another origin`);
  const isLeft = (name: string, value: string) => CREDENTIAL.test(name) || request.isSecret(name) || request.isSecret(value);
  const kept = Object.entries(request.headers).filter(
    ([name, value]) => !(becomesGet && name.startsWith("content-")) && !(isElsewhere && isLeft(name, value)),
  );
  return {
    ...request,
    url,
    headers: Object.fromEntries(kept),
    ...(becomesGet && { method: "GET", body: undefined }),
  };
}
