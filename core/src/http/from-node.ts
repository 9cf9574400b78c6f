import type { IncomingMessage, ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { sendNodeResponse } from "srvx/node";
import type { Clock } from "../ports/clock.ts";
import type { RequestHead } from "../grammar/contract.ts";
import { type AnswerHeaders, CALLER_LEFT, type Door } from "./host-adapter.ts";
import { isEventStream } from "./event-pieces.ts";
import { linger } from "./linger.ts";
import { decodeParams, type RawParams, searchOf, type SurfaceEvent } from "./surface-event.ts";
import type { Pieces } from "./pieces.ts";
import { roomIn } from "./read-stream.ts";
import { withHeaders } from "./answer-headers.ts";

/** Whether the caller has disconnected. On Deno, the request fails a moment before its response is destroyed. */
export function hasLeft(response: ServerResponse): boolean {
  return response.destroyed || response.req.errored !== null;
}

/** The door for the request and response of Node. It uses no web streams, because they cost more than a proxied call. */
export class NodeDoor implements Door {
  readonly head: RequestHead;
  readonly isMalformed: boolean;
  readonly #event: SurfaceEvent;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #controller: AbortController | undefined;
  #isLeft = false;
  #isDropped = false;

  constructor(event: SurfaceEvent, response: ServerResponse, raw: RawParams) {
    const { req: request } = response;
    const { params, isMalformed } = decodeParams(raw);
    this.#event = event;
    this.#request = request;
    this.#response = response;
    this.isMalformed = isMalformed;
    this.head = new NodeHead(request, event.target, params);
  }

  get scheme(): "http" | "https" {
    return "encrypted" in this.#request.socket ? "https" : "http";
  }

  get headers() {
    return this.#request.headers;
  }

  get request(): Request {
    return this.#event.req;
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

  get isAnswered(): boolean {
    return this.#response.headersSent;
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

  send(status: number, headers: AnswerHeaders, body?: string | Uint8Array): void {
    // A caller who left while the handler worked gets no answer.
    if (this.isLeft) return;
    this.#writeHead(status, headers);
    this.#response.end(this.head.method === "HEAD" ? undefined : body);
  }

  async sendPieces(status: number, headers: AnswerHeaders, pieces: Pieces): Promise<void> {
    const response = this.#response;
    if (this.isLeft) return pieces.leave();
    if (this.head.method === "HEAD") {
      this.send(status, headers);
      return pieces.leave();
    }
    this.open(status, headers);
    // Errors of the source after its reader has left are ignored.
    response.once("close", () => {
      if (!response.writableFinished) pieces.leave().catch(() => {});
    });
    for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) {
      if (response.destroyed) return;
      if (!response.write(piece)) await roomIn(response);
      if (response.destroyed) return;
    }
    if (!response.destroyed) response.end();
  }

  open(status: number, headers: AnswerHeaders): Writable {
    this.#writeHead(status, headers);
    if (isEventStream(headers["content-type"])) sendHeadSoon(this.#response);
    return this.#response;
  }

  async forward(given: Response, headers: AnswerHeaders): Promise<void> {
    const response = withHeaders(given, this.#withStaged(given.status, headers));
    await sendNodeResponse(this.#response, response);
  }

  cut(): void {
    this.#response.destroy();
  }

  giveUp(): void {}

  abort(reason: DOMException): void {
    this.#controller?.abort(reason);
  }

  dropBody(clock: Clock): void {
    if (this.#isDropped || this.#request.complete) return;
    this.#isDropped = true;
    linger(this.#request, clock);
  }

  #writeHead(status: number, headers: AnswerHeaders): void {
    // A head that could not be sent has left its status text here.
    this.#response.statusMessage = "";
    // All names at once: after a `setHeader`, Node would merge them one by one.
    this.#response.writeHead(status, this.#withStaged(status, headers) as Record<string, string | string[]>);
  }

  /** Adds the headers that middleware of the surface has set. */
  #withStaged(status: number, headers: AnswerHeaders): AnswerHeaders {
    if (!this.#event.isStaged) return headers;
    this.#event.joinVary(headers["vary"]);
    return { ...headers, ...this.#event.staged(status) };
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
