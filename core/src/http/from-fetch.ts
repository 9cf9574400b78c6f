import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough, Readable, type Writable } from "node:stream";
import { FastResponse, type ServerRequest } from "srvx";
import type { Clock } from "../ports/clock.ts";
import type { RequestHead } from "../grammar/contract.ts";
import { type AnswerHeaders, CALLER_LEFT, type Door } from "./host-adapter.ts";
import { isEventStream } from "./event-pieces.ts";
import { abandon, linger } from "./linger.ts";
import { decodeParams, type RawParams, searchOf, type SurfaceEvent } from "./surface-event.ts";
import type { Pieces } from "./pieces.ts";
import { webHeaders, withHeaders } from "./answer-headers.ts";
import { toWebStream } from "./read-stream.ts";

/** Statuses without a body: the Response constructor refuses a body for them. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Bytes of an event stream that its readers ignore. */
const EMPTY_COMMENT = ":\n\n";

/** The door for a fetch host. `answered` resolves with the Response as soon as its head is known. */
export class FetchDoor implements Door {
  readonly head: RequestHead;
  readonly isMalformed: boolean;
  readonly answered: Promise<Response>;
  readonly request: Request;
  readonly #event: SurfaceEvent;
  readonly #target: URL;
  readonly #node: { readonly req: IncomingMessage; readonly res?: ServerResponse } | undefined;
  readonly #controller = new AbortController();
  readonly #respond: (response: Response) => void;
  #status: number | undefined;
  #isReaderGone = false;
  #isDropped = false;
  #body: Readable | undefined;
  #written: PassThrough | undefined;
  #over: ((status: number) => void) | undefined;
  #break: (error: unknown) => void = () => {};

  constructor(event: SurfaceEvent, raw: RawParams) {
    const { req: request, target } = event;
    const { params, isMalformed } = decodeParams(raw);
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.request = request;
    this.#event = event;
    this.isMalformed = isMalformed;
    this.answered = promise;
    this.#respond = resolve;
    this.#target = target;
    const node = event.runtime?.node;
    this.#node = node?.req ? (node as { req: IncomingMessage; res?: ServerResponse }) : undefined;
    this.head = {
      method: request.method,
      path: target.pathname,
      search: searchOf(target),
      params,
      get address() {
        return (request as ServerRequest).ip;
      },
      header: (name) => request.headers.get(name) ?? undefined,
    };
    // Added first: a handler must see that its reader has left before it sees the consequences.
    this.signal.addEventListener("abort", () => this.#written?.destroy(), { once: true });
    this.#followSignal(request.signal);
  }

  get scheme(): "http" | "https" {
    return this.#target.protocol === "https:" ? "https" : "http";
  }

  get headers() {
    return Object.fromEntries(this.request.headers);
  }

  /**
   * The underlying Node stream if the host is Node, so that no web stream is between. The web stream is then not even accessed:
   * creating it would start a second reader, which pauses the first.
   */
  get body(): Readable | undefined {
    if (this.#node) return this.#node.req;
    return (this.#body ??= this.request.body ? Readable.fromWeb(this.request.body as never) : undefined);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isLeft(): boolean {
    return this.#isReaderGone || this.request.signal.aborted;
  }

  get isAnswered(): boolean {
    return this.#status !== undefined;
  }

  onOver(over: (status: number) => void): void {
    this.#over = over;
  }

  send(status: number, headers: AnswerHeaders, body?: string | Uint8Array<ArrayBuffer>): void {
    this.#answer(status, headers, body ?? null);
    this.#end();
  }

  sendPieces(status: number, headers: AnswerHeaders, pieces: Pieces): Promise<void> {
    if (this.#isBodyless(status)) {
      this.send(status, headers);
      return pieces.leave();
    }
    return new Promise((resolve, reject) => {
      const encoder = new TextEncoder();
      const stream = new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            if (holdsHead() && isEventStream(headers["content-type"])) controller.enqueue(encoder.encode(EMPTY_COMMENT));
          },
          pull: async (controller) => {
            this.#flushHead();
            try {
              const piece = await pieces.next();
              if (this.#isReaderGone) return;
              if (piece !== undefined) return controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
              this.#end();
              controller.close();
              resolve();
            } catch (error) {
              this.#break = () => controller.error(error);
              reject(error as Error);
            }
          },
          cancel: async () => {
            this.#leave();
            resolve();
            await pieces.leave();
          },
        },
        { highWaterMark: 0 },
      );
      this.#answer(status, headers, stream);
    });
  }

  open(status: number, headers: AnswerHeaders): Writable {
    if (this.isAnswered) throw new Error("respond() was called twice");
    const answer = new PassThrough();
    const isBodyless = this.#isBodyless(status);
    this.#answer(status, headers, isBodyless ? null : toWebStream(answer));
    if (isBodyless) answer.resume();
    // A stream that breaks without a listener is an uncaught exception. The stream itself tells the reader of the answer.
    answer.on("error", () => {});
    answer.once("close", () => {
      if (answer.readableEnded) this.#end();
      else this.#leave();
    });
    this.#break = (error) => void answer.destroy(error as Error);
    this.#written = answer;
    return answer;
  }

  async forward(given: Response, headers: AnswerHeaders): Promise<void> {
    const response = withHeaders(given, headers);
    const isBodyless = this.#isBodyless(response.status);
    if (isBodyless) await response.body?.cancel();
    this.#status = response.status;
    const { status, statusText } = response;
    // A handler may have used the Response of a host that replaced the global one.
    this.#respond(
      response instanceof Response && !isBodyless
        ? response
        : new Response(isBodyless ? null : response.body, { status, statusText, headers: response.headers }),
    );
    this.#end();
  }

  cut(error: unknown): void {
    if (!this.isAnswered) return this.send(500, {});
    const isOpen = !this.#isReaderGone;
    this.#break(error);
    if (isOpen) this.#leave();
  }

  giveUp(): void {
    if (this.isAnswered) return;
    this.#respond(new Response(null, { status: CALLER_LEFT }));
    this.#end();
  }

  abort(reason: DOMException): void {
    this.#controller.abort(reason);
  }

  /** On Node, a refused request still gets its answer. The source of any other body is told that it has lost its reader. */
  dropBody(clock: Clock): void {
    if (this.#isDropped) return;
    const request = this.#node?.req;
    const body = this.#body;
    this.#isDropped = request !== undefined || body !== undefined;
    if (request && !request.complete) linger(request, clock);
    if (body) abandon(body, clock);
  }

  #answer(
    status: number,
    headers: AnswerHeaders,
    body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
  ): void {
    this.#event.joinVary(headers["vary"]);
    const Made = answerClass();
    const response = new Made(this.#isBodyless(status) ? null : body, { status, headers: webHeaders(headers) });
    this.#status = status;
    this.#respond(response);
  }

  #isBodyless(status: number): boolean {
    return this.request.method === "HEAD" || BODYLESS.has(status);
  }

  /** The answer is complete, or its reader has stopped. */
  #end(): void {
    this.#over?.(this.#status ?? CALLER_LEFT);
    this.#over = undefined;
  }

  #leave(): void {
    this.#isReaderGone = true;
    this.abort(new DOMException("The caller went away", "AbortError"));
    this.#end();
  }

  /** A fetch host may report that the caller left by the request's signal, by the answer's stream, or by both. */
  #followSignal(signal: AbortSignal): void {
    if (signal.aborted) this.abort(signal.reason as DOMException);
    else signal.addEventListener("abort", () => this.abort(signal.reason as DOMException), { once: true });
  }

  /** Node holds the head back until the first byte of the body. A silent stream may not have one for minutes. */
  #flushHead(): void {
    const response = this.#node?.res;
    if (response?.headersSent) response.flushHeaders();
  }
}

/** `Bun.serve` holds the head of an answer back until the first byte of the body, as Node does, and cannot flush it. */
function holdsHead(): boolean {
  return "Bun" in globalThis;
}

/** h3 recognises instances of the current global Response as answers, and hosts replace it, for example Hono on Node. */
function answerClass(): typeof Response {
  return FastResponse.prototype instanceof Response ? FastResponse : Response;
}
