import { pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";
import Negotiator from "negotiator";
import type { Exchange, RequestHead } from "../grammar/contract.ts";
import type { FaultCode } from "../grammar/error.ts";
import type { RequestTrace } from "../ports/telemetry.ts";
import { type AnswerHeaders, idHeaders, JSON_HEADERS, NO_SNIFFING, requestIds, type RequestIds } from "./answer-headers.ts";
import { lendBody, readDeclaredBody } from "./declared-body.ts";
import { EVENT_STREAM_HEADERS, EventPieces, EventsBroken } from "./event-pieces.ts";
import type { HostAdapter } from "./host-adapter.ts";
import { JsonPieces, type Pieces, piecesOf, withFirst } from "./pieces.ts";
import { admit, begin, fault, type InstalledRoute, parse, type PathRoutes, render, type SurfaceServices } from "./pipeline.ts";

/** Why a request is refused before its route is known: a fault of the grammar, or an error of the host's own middleware. */
export type Refusal = { readonly code: FaultCode; readonly message?: string } | { readonly thrown: unknown };

/**
 * Answer one request from any host: admit it, parse it, call the route's handler, and send the result. Resolves when the answer
 * is sent, and never rejects.
 */
export async function answer(routes: PathRoutes, host: HostAdapter, services: SurfaceServices, refusal?: Refusal): Promise<void> {
  const { head } = host;
  const ids = requestIds(head.header("x-request-id"), services.ids);
  const trace = begin(routes, head, host.scheme, ids, services.telemetry);
  let route: InstalledRoute | undefined;
  let failure: string | undefined;
  host.onOver((status) => trace.end(failure === undefined ? { status } : { status, error: failure }));
  try {
    if (refusal) throw "thrown" in refusal ? refusal.thrown : fault(routes.faults, refusal.code, refusal);
    const admitted = await admit(routes, head, host.signal);
    route = admitted.route;
    const { contract } = route;
    const { success } = contract;
    const input = inputOf(route, host, admitted.who, trace, services);
    if (success.kind === "exchange") {
      input.exchange = exchangeOf(host, ids);
      await trace.run(() => admitted.route.handler(input as never));
      if (!host.isAnswered && !host.isLeft) throw new Error(`${route.key} ended without an answer`);
      if (!host.isAnswered) host.giveUp();
      return;
    }
    const result = await trace.run(() => handled(admitted.route, input, host, services));
    const own = { ...input.answerHeaders, ...idHeaders(ids), ...NO_SNIFFING };
    switch (success.kind) {
      case "bytes":
        return await host.forward(result as Response, own);
      case "events": {
        const pieces = new EventPieces(
          result as ConstructorParameters<typeof EventPieces>[0],
          {
            stopped: (reason) => host.abort(reason),
            render(thrown) {
              const { error, body } = render(thrown, routes, route, head, services, ids);
              failure = error.code;
              return body;
            },
          },
          services,
        );
        return await host.sendPieces(success.status, { ...EVENT_STREAM_HEADERS, ...own }, pieces);
      }
      case "json":
        if (result instanceof JsonPieces) return await sendJson(host, success.status, own, result);
        return await sendWhole(host, success.status, own, JSON.stringify(result));
      default:
        return host.send(success.status, own);
    }
  } catch (thrown) {
    try {
      // An error after the caller has left is not a fault.
      if (host.isLeft) return host.giveUp();
      if (host.isAnswered) {
        // A part of the answer is sent already: the connection is cut, so that the answer does not look complete.
        if (!(thrown instanceof EventsBroken)) {
          failure = "answer_broken";
          services.telemetry.log.error(`${route?.key ?? routes.surface} broke after its head`, { request: ids.own }, thrown);
        }
        return host.cut(thrown);
      }
      const { error, status, headers, body } = render(thrown, routes, route, head, services, ids);
      failure = error.code;
      if (status === 401) services.refused?.(routes.surface, head);
      host.dropBody(services.clock);
      host.send(status, headers, body);
    } catch (error) {
      // The refusal itself cannot be sent, for example because of an invalid header. The failure must affect only this caller.
      services.telemetry.log.error(`An answer of surface "${routes.surface}" could not be sent`, { request: ids.own }, error);
      host.cut(error);
    }
  }
}

/** The input of every handler. `exchange` and `body` are added if the route has them. */
function inputOf(
  { contract, say }: InstalledRoute,
  host: HostAdapter,
  who: unknown,
  trace: RequestTrace,
  { streams }: SurfaceServices,
) {
  const { head, signal } = host;
  if (host.isMalformed) {
    throw fault(contract.faults, "invalid_request", { message: "Malformed percent-escape in the path" });
  }
  return {
    params: parse(contract.params, head.params, contract.faults),
    query: contract.query && parse(contract.query, readQuery(head.search), contract.faults),
    body: undefined as unknown,
    head,
    who,
    signal,
    stopping: streams.ended,
    answerHeaders: {} as Record<string, string>,
    trace,
    fail: contract.errors ?? {},
    say,
    request: contract.success.kind === "bytes" ? host.request : undefined,
    exchange: undefined as Exchange | undefined,
  };
}

function exchangeOf(host: HostAdapter, ids: RequestIds): Exchange {
  const { own, ofCaller = own } = ids;
  return {
    headers: host.headers,
    body: host.body ?? Readable.from([]),
    // A handler that passes on another service's answer may pass on that service's `x-request-id`.
    respond: (status, headers) =>
      host.open(status, { ...NO_SNIFFING, "x-request-id": ofCaller, ...headers, "x-portico-request-id": own }),
  };
}

/** Hand a parsed or streamed body to the handler. */
async function handled(
  { contract, handler }: InstalledRoute,
  input: ReturnType<typeof inputOf>,
  host: HostAdapter,
  { clock }: SurfaceServices,
): Promise<unknown> {
  // The handler reads the body of a `bytes` route that declares no body.
  if (!contract.body && contract.bodyAs !== "stream") return handler(input as never);
  const { head } = host;
  const arriving = {
    body: host.body,
    contentType: head.header("content-type"),
    declared: Number(head.header("content-length") ?? 0),
  };
  if (contract.bodyAs !== "stream") {
    input.body = await readDeclaredBody(contract, arriving, clock);
    return handler(input as never);
  }
  try {
    return await lendBody(contract, arriving, { clock, signal: host.signal }, (body) => {
      input.body = body;
      return handler(input as never);
    });
  } finally {
    host.dropBody(clock);
  }
}

const VARY = "accept-encoding";
/** Shorter answers are not compressed: they fit in a few packets. */
const COMPRESSED_BYTES = 4096;

/**
 * The content coding of an answer, by what the caller accepts. Only reads are compressed: the answers of other calls are short, and some
 * contain a secret that is shown once.
 */
function codingOf({ head }: HostAdapter): Coding | undefined {
  return head.method === "GET" || head.method === "HEAD" ? acceptedCoding(head, CODINGS) : undefined;
}

async function sendWhole(host: HostAdapter, status: number, own: AnswerHeaders, text: string): Promise<void> {
  const length = Buffer.byteLength(text);
  const headers = { ...JSON_HEADERS, ...own };
  if (length < COMPRESSED_BYTES) return host.send(status, { ...headers, "content-length": String(length) }, text);
  const coding = codingOf(host);
  const varying = { ...headers, vary: VARY };
  if (!coding) return host.send(status, { ...varying, "content-length": String(length) }, text);
  const coded = { ...varying, "content-encoding": coding };
  // Only the body would tell its length.
  if (host.head.method === "HEAD") return host.send(status, coded);
  const body = await compress(Buffer.from(text), coding);
  if (host.isLeft) return host.giveUp();
  host.send(status, { ...coded, "content-length": String(body.byteLength) }, body);
}

/** Most lists have one piece. They are sent like any other answer. */
async function sendJson(host: HostAdapter, status: number, own: AnswerHeaders, json: JsonPieces): Promise<void> {
  const pieces = piecesOf(json);
  const first = await pieces.next();
  const second = first === undefined ? undefined : await pieces.next();
  if (host.isLeft) {
    await pieces.leave();
    return host.giveUp();
  }
  if (first === undefined || second === undefined) return sendWhole(host, status, own, String(first ?? ""));
  const all = withFirst([first, second], pieces);
  const coding = codingOf(host);
  const headers = { ...JSON_HEADERS, ...own, vary: VARY, ...(coding && { "content-encoding": coding }) };
  // A HEAD request takes no piece.
  const isPacked = coding !== undefined && host.head.method !== "HEAD";
  return host.sendPieces(status, headers, isPacked ? compressPieces(all, coding) : all);
}

/**
 * The parameters of a query. A parameter that occurs once is a string. A repeated one is an array, which the schema accepts or
 * refuses.
 */
function readQuery(search: string): Record<string, string | string[]> {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query.get(name);
    query.set(name, known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value]);
  }
  // Object.fromEntries defines own properties, so that a parameter named __proto__ is an ordinary name.
  return Object.fromEntries(query);
}

/** The content codings of answers. */
const CODINGS = ["br", "gzip"] as const;

type Coding = (typeof CODINGS)[number];

/** Levels at which both codings take about as long as reading the stored data. */
const GZIP = { level: 5 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT } };

/** Compresses a whole text, in a thread of the pool. */
function compress(text: Buffer, coding: Coding): Promise<Buffer<ArrayBuffer>> {
  return coding === "br" ? promisify(brotliCompress)(text, BROTLI) : promisify(gzip)(text, GZIP);
}

/** The same pieces, compressed in threads of the pool. A few pieces are made before the reader takes them. */
function compressPieces(pieces: Pieces, coding: Coding): Pieces {
  const packer = coding === "br" ? createBrotliCompress(BROTLI) : createGzip(GZIP);
  async function* made(): AsyncGenerator<string | Uint8Array, void> {
    try {
      for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) yield piece;
    } finally {
      await pieces.leave();
    }
  }
  const packed = packer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  // Errors of the source reach the reader of `packed`.
  pipeline(made(), packer, () => {});
  return {
    async next() {
      const step = await packed.next();
      return step.done ? undefined : step.value;
    },
    async leave() {
      packer.destroy();
      await pieces.leave();
    },
  };
}

/**
 * The content coding of an answer, by the caller's `Accept-Encoding` and its order: one of `codings`. Undefined if the answer is sent as it is,
 * which is always possible.
 */
export function acceptedCoding<Coding extends string>(
  head: Pick<RequestHead, "header">,
  codings: readonly Coding[],
): Coding | undefined {
  const accepted = head.header("accept-encoding");
  if (accepted === undefined) return undefined;
  const best = new Negotiator({ headers: { "accept-encoding": accepted } }).encoding([...codings, "identity"]);
  return codings.find((coding) => coding === best);
}
