import type { IncomingMessage, ServerResponse } from "node:http";
import type { Exchange, RequestHead } from "../route.ts";
import { lendBody, readDeclaredBody } from "./declared-body.ts";
import { JSON_HEADERS } from "./json-headers.ts";
import { JsonPieces } from "./json-pieces.ts";
import { linger } from "./linger.ts";
import {
  admit,
  begin,
  CALLER_LEFT,
  type InstalledRoute,
  type MatchedPath,
  parse,
  render,
  type SurfaceServices,
} from "./pipeline.ts";
import { readQuery } from "./query.ts";
import { roomIn } from "./room-in.ts";

/** The kinds of success that are answered here. */
export const DIRECT_KINDS: readonly string[] = ["exchange", "json", "empty"];

/**
 * Answer a route on the Node request and response themselves. The same contract, guard, checks and envelope as on a fetch host; only the
 * web streams and objects in between are left out, because they cost more than the rest of a proxied call.
 */
export async function answerNode(
  { routes, params }: MatchedPath,
  request: IncomingMessage,
  response: ServerResponse,
  services: SurfaceServices,
): Promise<void> {
  const id = services.ids.id("req_");
  const head = headOf(request, params);
  const trace = begin(routes, head, "encrypted" in request.socket ? "https" : "http", id, services.telemetry);
  const left = new AbortController();
  let route: InstalledRoute | undefined;
  let failure: string | undefined;
  response.on("close", () => {
    const isWhole = response.writableFinished;
    if (!isWhole) left.abort(new DOMException("The caller went away", "AbortError"));
    trace.end({ status: response.headersSent ? response.statusCode : CALLER_LEFT, ...(failure && { error: failure }) });
  });
  try {
    const admitted = await admit(routes, head, left.signal);
    route = admitted.route;
    const { contract } = route;
    const input = {
      params: parse(contract.params, params, contract.faults),
      query: parse(contract.query, contract.query && readQuery(head.search), contract.faults),
      head,
      who: admitted.who,
      signal: left.signal,
      trace,
      fail: contract.errors ?? {},
      say: route.say,
      request: undefined,
    };
    if (contract.success.kind === "exchange") {
      await route.handler({ ...input, body: undefined, exchange: exchangeOf(request, response, id) } as never);
      if (!response.headersSent && !response.destroyed) throw new Error(`${route.key} ended without an answer`);
      return;
    }
    const arriving = {
      body: request,
      contentType: request.headers["content-type"],
      declared: Number(request.headers["content-length"] ?? 0),
    };
    const { handler } = route;
    const isStreamed = contract.bodyAs === "stream";
    const result = isStreamed
      ? await lendBody(contract, arriving, { clock: services.clock, signal: left.signal }, (body) =>
          handler({ ...input, body } as never),
        )
      : await handler({ ...input, body: await readDeclaredBody(contract, arriving, services.clock) } as never);
    if (isStreamed && !request.complete) linger(request, services.clock);
    await sendResult(response, contract.success.kind === "json" ? result : undefined, {
      status: contract.success.status,
      isHead: request.method === "HEAD",
      id,
    });
  } catch (thrown) {
    if (response.destroyed) return;
    if (response.headersSent) {
      // Part of the answer is out: a cut connection is the only honest end.
      failure = "answer_broken";
      services.telemetry.log.error(`${route?.key ?? routes.surface} broke after its head`, { request: id }, thrown);
      response.destroy();
      return;
    }
    const { error, status, headers, body } = render(thrown, routes, route, head, services, id);
    failure = error.code;
    if (!request.complete) linger(request, services.clock);
    response.writeHead(status, headers as Record<string, string | string[]>);
    response.end(request.method === "HEAD" ? undefined : body);
  }
}

function exchangeOf(request: IncomingMessage, response: ServerResponse, id: string): Exchange {
  return {
    headers: request.headers,
    body: request,
    respond(status, headers) {
      // All names at once: after a `setHeader` Node would merge them one by one.
      response.writeHead(status, { ...(headers as Record<string, string | string[]>), "x-portico-request-id": id });
      if (isEventStream(headers["content-type"])) sendHeadSoon(response);
      return response;
    },
  };
}

/** Undefined is an answer without a body. Rejects with what breaks a body that is sent in pieces. */
async function sendResult(
  response: ServerResponse,
  result: unknown,
  { status, isHead, id }: { readonly status: number; readonly isHead: boolean; readonly id: string },
): Promise<void> {
  // Whoever left while the handler worked is not answered.
  if (response.destroyed) return;
  if (result === undefined) return void response.writeHead(status, { "x-portico-request-id": id }).end();
  if (!(result instanceof JsonPieces)) {
    const body = JSON.stringify(result);
    response.writeHead(status, { ...JSON_HEADERS, "content-length": Buffer.byteLength(body), "x-portico-request-id": id });
    response.end(isHead ? undefined : body);
    return;
  }
  await sendPieces(response, result, { status, isHead, id });
}

/** Most lists are one piece, and then an answer like any other. The next piece is made when there is room for it. */
async function sendPieces(
  response: ServerResponse,
  pieces: JsonPieces,
  { status, isHead, id }: { readonly status: number; readonly isHead: boolean; readonly id: string },
): Promise<void> {
  const headers = { ...JSON_HEADERS, "x-portico-request-id": id };
  const iterator = pieces[Symbol.asyncIterator]();
  const first = await iterator.next();
  let next = await iterator.next();
  if (next.done || isHead) {
    await iterator.return?.();
    const body = first.done ? "" : first.value;
    response.writeHead(status, next.done ? { ...headers, "content-length": Buffer.byteLength(body) } : headers);
    return void response.end(isHead ? undefined : body);
  }
  response.writeHead(status, headers);
  response.write(first.value);
  for (; !next.done && !response.destroyed; next = await iterator.next()) {
    if (!response.write(next.value)) await roomIn(response);
  }
  await iterator.return?.();
  if (!response.destroyed) response.end();
}

/**
 * Node holds the head back until the first byte of the body, which a silent stream may not have for minutes. It goes out at the
 * end of this turn of the event loop, in one piece with what the turn writes.
 */
function sendHeadSoon(response: ServerResponse): void {
  const { socket } = response;
  // The socket's own cork: a response that is ended while it is corked itself puts its last chunk before the others.
  socket?.cork();
  response.flushHeaders();
  setImmediate(() => socket?.uncork());
}

function isEventStream(contentType: string | readonly string[] | undefined): boolean {
  return typeof contentType === "string" && contentType.startsWith("text/event-stream");
}

function headOf(request: IncomingMessage, params: MatchedPath["params"]): RequestHead {
  const url = request.url ?? "/";
  const question = url.indexOf("?");
  return {
    method: request.method ?? "GET",
    path: question < 0 ? url : url.slice(0, question),
    search: question < 0 ? "" : url.slice(question),
    params,
    header(name) {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
  };
}
