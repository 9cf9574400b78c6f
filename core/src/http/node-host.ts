import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Writable } from "node:stream";
import { FastResponse } from "srvx";
import type { RequestHead } from "../grammar/contract.ts";
import type { Clock } from "../ports/clock.ts";
import { isEventStream } from "./event-pieces.ts";
import { type AnswerHeaders, CALLER_LEFT } from "./answer-headers.ts";
import { HostAdapter } from "./host-adapter.ts";
import { linger } from "./linger.ts";
import { type RawParams, searchOf, type SurfaceEvent } from "./surface-event.ts";

/** Whether the caller has disconnected. On Deno, the request fails a moment before its response is destroyed. */
export function hasLeft(response: ServerResponse): boolean {
  return response.destroyed || response.req.errored !== null;
}

/**
 * A request of Node. Its answer is a Response, which srvx sends, except that of an exchange: see `open`.
 */
export class NodeHost extends HostAdapter {
  readonly head: RequestHead;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #controller: AbortController | undefined;
  #isLeft = false;
  #isDropped = false;

  constructor(event: SurfaceEvent, response: ServerResponse, raw: RawParams) {
    super(event, raw);
    this.#request = response.req;
    this.#response = response;
    this.head = new NodeHead(response.req, event.target, this.params);
  }

  get headers() {
    return this.#request.headers;
  }

  get body() {
    return this.#request;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#isLeft) this.#controller.abort(callerLeft());
    }
    return this.#controller.signal;
  }

  get isLeft(): boolean {
    return hasLeft(this.#response);
  }

  onOver(over: (status: number) => void): void {
    const response = this.#response;
    response.on("close", () => {
      if (!response.writableFinished) {
        this.#isLeft = true;
        this.#controller?.abort(callerLeft());
      }
      over(response.headersSent ? response.statusCode : CALLER_LEFT);
    });
  }

  /**
   * Exchanges, such as the calls of the model proxy, are the one kind of answer that bypasses h3: the returned stream is the response of Node
   * itself, and h3 gets only the status, at the end. With a Response whose body is a web stream, a call of the proxy took 1.8 times the
   * processor time, and a streamed call 1.9 times. With a Response whose body is a stream of Node, it took 2.4 and 1.7 times (means of 12
   * interleaved rounds at 32 connections, standard error 0.1).
   */
  open(status: number, headers: AnswerHeaders): Writable {
    const response = this.#response;
    // A head that could not be sent has left its status text here.
    response.statusMessage = "";
    // All names at once: after a `setHeader`, Node would merge them one by one.
    response.writeHead(status, this.#withStaged(status, headers) as Record<string, string | string[]>);
    this.status = status;
    this.break = () => void response.destroy();
    response.once("close", () => this.respond(new FastResponse(null, { status })));
    if (isEventStream(headers["content-type"])) sendHeadSoon(response);
    return response;
  }

  abort(reason: DOMException): void {
    this.#controller?.abort(reason);
  }

  dropBody(clock: Clock): void {
    if (this.#isDropped || this.#request.complete) return;
    this.#isDropped = true;
    linger(this.#request, clock);
  }

  protected override answer(...[status, headers, body]: Parameters<HostAdapter["answer"]>): void {
    super.answer(status, headers, body, STATUS_CODES[status]);
  }

  protected flushHead(): void {
    if (this.#response.headersSent) this.#response.flushHeaders();
  }

  /** The response of Node tells of its end by `close`. */
  protected end(): void {}

  protected leave(): void {}

  /** Adds the headers that middleware of the surface has set. */
  #withStaged(status: number, headers: AnswerHeaders): AnswerHeaders {
    if (!this.event.isStaged) return headers;
    this.event.joinVary(headers["vary"]);
    return { ...headers, ...this.event.staged(status) };
  }
}

/**
 * Headers of which Node shows only the first. A RequestHead joins them, as fetch does: a header that two readers could read
 * differently is then invalid.
 */
const SHOWN_ONCE: ReadonlySet<string> = new Set([
  "age",
  "authorization",
  "content-length",
  "content-type",
  "etag",
  "expires",
  "from",
  "host",
  "if-modified-since",
  "if-unmodified-since",
  "last-modified",
  "location",
  "max-forwards",
  "proxy-authorization",
  "referer",
  "retry-after",
  "server",
  "user-agent",
]);

class NodeHead implements RequestHead {
  readonly method: string;
  readonly params: Readonly<Record<string, string>>;
  readonly #request: IncomingMessage;
  readonly #target: URL;

  constructor(request: IncomingMessage, target: URL, params: Readonly<Record<string, string>>) {
    this.method = request.method ?? "GET";
    this.params = params;
    this.#request = request;
    this.#target = target;
  }

  get path(): string {
    return this.#target.pathname;
  }

  get search(): string {
    return searchOf(this.#target);
  }

  get address(): string | undefined {
    return this.#request.socket.remoteAddress;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    if (typeof value !== "string") return value?.join(", ");
    return SHOWN_ONCE.has(name) ? joined(this.#request.rawHeaders, name, value) : value;
  }
}

function joined(raw: readonly string[], name: string, shown: string): string {
  let values: string[] | undefined;
  let count = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const each = raw[at]!;
    if (each.length !== name.length || each.toLowerCase() !== name) continue;
    if (++count > 1) (values ??= [shown]).push(raw[at + 1]!);
  }
  return values ? values.join(", ") : shown;
}

/**
 * Node holds the head back until the first byte of the body. A silent stream may not have one for minutes. The head is sent at
 * the end of this turn of the event loop, together with the data of the turn.
 */
function sendHeadSoon(response: ServerResponse): void {
  const { socket } = response;
  // Corks the socket: a response that is ended while it is corked itself puts its last chunk before the others.
  socket?.cork();
  response.flushHeaders();
  setImmediate(() => socket?.uncork());
}

function callerLeft(): DOMException {
  return new DOMException("The caller went away", "AbortError");
}
