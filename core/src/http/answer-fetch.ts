import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { FastResponse } from "srvx";
import type { FaultCode } from "../error.ts";
import type { Clock } from "../ports/clock.ts";
import type { RequestTrace } from "../ports/telemetry.ts";
import type { RequestHead } from "../route.ts";
import { lendBody, readDeclaredBody } from "./declared-body.ts";
import { EVENT_STREAM_HEADERS, eventStream, type EventStreamAnswer } from "./event-stream.ts";
import { exchanged } from "./exchange-fetch.ts";
import { JSON_HEADERS } from "./json-headers.ts";
import { JsonPieces } from "./json-pieces.ts";
import { abandon, linger } from "./linger.ts";
import {
  admit,
  begin,
  CALLER_LEFT,
  fault,
  type InstalledRoute,
  type PathRoutes,
  parse,
  render,
  type SurfaceServices,
} from "./pipeline.ts";
import { readQuery } from "./query.ts";
import { webHeaders } from "./web-headers.ts";

/**
 * Answer one request of a fetch host: every kind of route, exchange routes by way of a pass-through stream. `refusal` is a fault that was
 * found before any route was looked for.
 */
export async function answerFetch(
  routes: PathRoutes,
  request: Request,
  rawParams: Readonly<Record<string, string>>,
  services: SurfaceServices,
  refusal?: FaultCode,
): Promise<Response> {
  const id = services.ids.id("req_");
  const url = new URL(request.url);
  const { params, isMalformed } = decodeParams(rawParams);
  const head = headOf(request, url, params);
  const trace = begin(routes, head, url.protocol === "https:" ? "https" : "http", id, services.telemetry);
  const left = leaving(request.signal);
  let route: InstalledRoute | undefined;
  try {
    if (refusal) throw fault(routes.faults, refusal);
    const admitted = await admit(routes, head, left.signal);
    route = admitted.route;
    const { contract } = route;
    if (isMalformed) throw fault(contract.faults, "invalid_request", { message: "Malformed percent-escape in the path" });
    const { kind } = contract.success;
    const input = {
      head,
      who: admitted.who,
      signal: left.signal,
      trace,
      fail: contract.errors ?? {},
      say: route.say,
      params: parse(contract.params, params, contract.faults),
      query: parse(contract.query, contract.query && readQuery(head.search), contract.faults),
      request: kind === "bytes" ? request : undefined,
    };
    if (kind === "exchange")
      return await exchanged(route, { ...input, body: undefined }, { request, body: bodyOf(request), left, trace, services, id });
    const result =
      contract.bodyAs === "stream"
        ? await streamed(route, input, request, { clock: services.clock, signal: left.signal })
        : await route.handler({ ...input, body: await parsedBody(route, request, services) } as never);
    const failed = (error: unknown) => render(error, routes, route, head, services, id);
    const opened = () => flushHead(request);
    const response = withRequestId(toResponse(route, result, { trace, left, opened, failed, services }), id);
    // A stream is not over when its head is sent: it ends the trace itself.
    if (kind !== "events" && !(result instanceof JsonPieces)) trace.end({ status: response.status });
    return request.method === "HEAD" ? await headOnly(response) : response;
  } catch (thrown) {
    if (request.signal.aborted) {
      // Nobody reads on, and what failed because of that is nobody's fault.
      trace.end({ status: CALLER_LEFT });
      return new FastResponse(null, { status: CALLER_LEFT });
    }
    const { error, status, headers, body } = render(thrown, routes, route, head, services, id);
    trace.end({ status, error: error.code });
    const node = nodeOf(request);
    if (node && !node.req.complete) linger(node.req, services.clock);
    return new FastResponse(request.method === "HEAD" ? null : body, { status, headers: webHeaders(headers) });
  }
}

interface Ending {
  readonly trace: RequestTrace;
  readonly left: AbortController;
  readonly opened: () => void;
  readonly services: SurfaceServices;
  readonly failed: (error: unknown) => { readonly error: { readonly code: string }; readonly body: string };
}

function toResponse(route: InstalledRoute, result: unknown, ending: Ending): Response {
  const { success } = route.contract;
  switch (success.kind) {
    case "json": {
      if (result instanceof JsonPieces) {
        const stream = result.toStream((error) => ending.trace.end(ended(error, success.status, ending)));
        return new FastResponse(stream, { status: success.status, headers: JSON_HEADERS });
      }
      const body = JSON.stringify(result);
      return new FastResponse(body, { status: success.status, headers: JSON_HEADERS });
    }
    case "empty":
      return new FastResponse(null, { status: success.status });
    case "events": {
      const answer: EventStreamAnswer = {
        opened: ending.opened,
        ended: (error) => ending.trace.end({ status: success.status, ...(error && { error }) }),
        left: (reason) => ending.left.abort(reason),
        render(thrown) {
          const { error, body } = ending.failed(thrown);
          return { code: error.code, body };
        },
      };
      const stream = eventStream(result as AsyncIterable<{ event: string; data: unknown }>, answer, ending.services);
      return new FastResponse(stream, { headers: EVENT_STREAM_HEADERS });
    }
    default:
      return result as Response;
  }
}

/** How a stream of JSON ended; what broke it is logged as any failure is. */
function ended(error: unknown, status: number, { failed }: Ending): { readonly status: number; readonly error?: string } {
  return error === undefined ? { status } : { status, error: failed(error).error.code };
}

async function parsedBody(route: InstalledRoute, request: Request, services: SurfaceServices): Promise<unknown> {
  const body = route.contract.body ? bodyOf(request) : undefined;
  try {
    return await readDeclaredBody(
      route.contract,
      { body, contentType: request.headers.get("content-type") ?? undefined },
      services.clock,
    );
  } catch (error) {
    // A refused Node request still gets its answer; any other source is told that nobody reads on.
    if (body && !nodeOf(request)) abandon(body, services.clock);
    throw error;
  }
}

async function streamed(
  { contract, handler }: InstalledRoute,
  input: object,
  request: Request,
  waiting: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<unknown> {
  const body = bodyOf(request);
  const arriving = { body, contentType: request.headers.get("content-type") ?? undefined };
  const node = nodeOf(request);
  try {
    const result = await lendBody(contract, arriving, waiting, (lent) => handler({ ...input, body: lent } as never));
    if (node && !node.req.complete) linger(node.req, waiting.clock);
    return result;
  } finally {
    if (body && !node) abandon(body, waiting.clock);
  }
}

/**
 * The Node stream underneath where the host is Node, so that no web stream stands in between. The web stream is not even looked at
 * then: making it would start a second reader that pauses the first.
 */
function bodyOf(request: Request): Readable | undefined {
  const node = nodeOf(request);
  if (node) return node.req;
  return request.body ? Readable.fromWeb(request.body as never) : undefined;
}

function nodeOf(request: Request): { readonly req: IncomingMessage; readonly res?: ServerResponse } | undefined {
  const { runtime } = request as { runtime?: { node?: { req?: IncomingMessage; res?: ServerResponse } } };
  return runtime?.node?.req ? (runtime.node as { req: IncomingMessage; res?: ServerResponse }) : undefined;
}

/** Node holds a head back until the first byte of the body, which a silent stream may not have for minutes. */
function flushHead(request: Request): void {
  const response = nodeOf(request)?.res;
  if (response?.headersSent) response.flushHeaders();
}

/** Aborts with the host's signal, and when the reader of the answer leaves: a fetch host may tell either. */
function leaving(signal: AbortSignal): AbortController {
  const left = new AbortController();
  if (signal.aborted) left.abort(signal.reason);
  else signal.addEventListener("abort", () => left.abort(signal.reason), { once: true });
  return left;
}

/** A handler's own Response may have headers that cannot be changed, as those of `fetch` and `Response.redirect` do. */
function withRequestId(response: Response, id: string): Response {
  try {
    response.headers.set("x-portico-request-id", id);
    return response;
  } catch {
    const headers = new Headers(response.headers);
    headers.set("x-portico-request-id", id);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}

async function headOnly(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new FastResponse(null, { status: response.status, headers: response.headers });
}

function headOf(request: Request, url: URL, params: Readonly<Record<string, string>>): RequestHead {
  return {
    method: request.method,
    path: url.pathname,
    search: url.search,
    params,
    header: (name) => request.headers.get(name) ?? undefined,
  };
}

/** What cannot be decoded stays as it came, so that the credential is looked at first and refused first. */
function decodeParams(raw: Readonly<Record<string, string>>): { params: Record<string, string>; isMalformed: boolean } {
  try {
    const params = Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, decodeURIComponent(value)]));
    return { params, isMalformed: false };
  } catch {
    return { params: { ...raw }, isMalformed: true };
  }
}
