import type { Readable, Writable } from "node:stream";
import { FastResponse } from "srvx";
import type { Exchange, RequestHead } from "../grammar/contract.ts";
import type { Clock } from "../ports/clock.ts";
import { type AnswerHeaders, CALLER_LEFT, webHeaders, withHeaders } from "./answer-headers.ts";
import { isEventStream } from "./event-pieces.ts";
import type { Pieces } from "./pieces.ts";
import { decodeParams, type RawParams, type SurfaceEvent } from "./surface-event.ts";

/** Statuses without a body: the Response constructor refuses a body for them. */
const BODYLESS: ReadonlySet<number> = new Set([204, 205, 304]);

/** Bytes of an event stream that its readers ignore. */
const EMPTY_COMMENT = ":\n\n";

/**
 * One request, and its answer as a Response that h3 and the host send. There is an adapter for Node and one for fetch hosts, because they
 * tell in different ways what a request holds and when its caller leaves. Adapters know streams and framing, and no contracts: `answer`
 * alone decides what is answered.
 */
export abstract class HostAdapter {
  abstract readonly head: RequestHead;
  /** The path has an escape that cannot be decoded. Its parameters are then not decoded. */
  readonly isMalformed: boolean;
  /** All headers by their lowercase names. */
  abstract readonly headers: Exchange["headers"];
  /** Undefined where a request has no body. A Node request always has one, which may be empty. */
  abstract readonly body: Readable | undefined;
  /** Aborts when the caller leaves before its answer is complete, and with `abort`. */
  abstract readonly signal: AbortSignal;
  /** The caller has left. */
  abstract readonly isLeft: boolean;
  /** The Response, as soon as its head is known. */
  readonly answered: Promise<Response>;
  protected readonly params: RequestHead["params"];
  protected readonly event: SurfaceEvent;
  protected status: number | undefined;
  protected readonly respond: (response: Response) => void;
  /** Ends the body of the answer with an error. */
  protected break: (error: unknown) => void = () => {};

  constructor(event: SurfaceEvent, raw: RawParams) {
    const { params, isMalformed } = decodeParams(raw);
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.event = event;
    this.params = params;
    this.isMalformed = isMalformed;
    this.answered = promise;
    this.respond = resolve;
  }

  /** The request as an object of fetch. */
  get request(): Request {
    return this.event.req;
  }

  get scheme(): "http" | "https" {
    return this.event.target.protocol === "https:" ? "https" : "http";
  }

  /** The head of an answer is decided. */
  get isAnswered(): boolean {
    return this.status !== undefined;
  }

  /**
   * `over` is called once, when the answer is complete, was cut, or has lost its reader. It gets the status that was sent, or 499
   * if none was.
   */
  abstract onOver(over: (status: number) => void): void;

  /** Send a whole answer. The answer to a HEAD request is only the head. */
  send(status: number, headers: AnswerHeaders, body?: string | Uint8Array<ArrayBuffer>): void {
    this.answer(status, headers, body ?? null);
    this.end();
  }

  /**
   * Send the pieces at the reader's pace. Resolves when the last piece is sent or the reader has left. Rejects as the pieces do.
   */
  sendPieces(status: number, headers: AnswerHeaders, pieces: Pieces): Promise<void> {
    if (this.isBodyless(status)) {
      this.send(status, headers);
      return pieces.leave();
    }
    return new Promise((resolve, reject) => {
      const encoder = new TextEncoder();
      let isReaderGone = false;
      const stream = new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            if (holdsHead() && isEventStream(headers["content-type"])) controller.enqueue(encoder.encode(EMPTY_COMMENT));
          },
          pull: async (controller) => {
            this.flushHead();
            try {
              const piece = await pieces.next();
              if (isReaderGone) return;
              if (piece !== undefined) return controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
              this.end();
              controller.close();
              resolve();
            } catch (error) {
              this.break = () => controller.error(error);
              reject(error as Error);
            }
          },
          cancel: async () => {
            isReaderGone = true;
            this.leave();
            resolve();
            await pieces.leave();
          },
        },
        { highWaterMark: 0 },
      );
      this.answer(status, headers, stream);
    });
  }

  /** Send the head of an exchange. The caller writes the body to the returned stream and ends it. */
  abstract open(status: number, headers: AnswerHeaders): Writable;

  /** Send a Response that a handler has made, with these additional headers. */
  async forward(given: Response, headers: AnswerHeaders): Promise<void> {
    const response = withHeaders(given, headers);
    const isBodyless = this.isBodyless(response.status);
    if (isBodyless) await response.body?.cancel();
    this.status = response.status;
    const { status, statusText } = response;
    // A handler may have used the Response of a host that replaced the global one.
    this.respond(
      response instanceof Response && !isBodyless
        ? response
        : new Response(isBodyless ? null : response.body, { status, statusText, headers: response.headers }),
    );
    this.end();
  }

  /** End an answer that was sent in part, or cannot be sent, so that its reader does not take it for complete. */
  cut(error: unknown): void {
    if (!this.isAnswered) return this.send(500, {});
    this.break(error);
  }

  /** The caller has left, so no answer is possible. */
  giveUp(): void {
    if (this.isAnswered) return;
    this.respond(new Response(null, { status: CALLER_LEFT }));
    this.end();
  }

  abstract abort(reason: DOMException): void;

  /** Handle the part of the request's body that no handler reads. */
  abstract dropBody(clock: Clock): void;

  protected answer(
    status: number,
    headers: AnswerHeaders,
    body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
    statusText?: string,
  ): void {
    this.event.joinVary(headers["vary"]);
    const Made = answerClass();
    const init = { status, headers: webHeaders(headers), ...(statusText !== undefined && { statusText }) };
    const response = new Made(this.isBodyless(status) ? null : body, init);
    this.status = status;
    this.respond(response);
  }

  protected isBodyless(status: number): boolean {
    return this.head.method === "HEAD" || BODYLESS.has(status);
  }

  /** Sends a head that waits for the first byte of the body. A silent stream may not have one for minutes. */
  protected abstract flushHead(): void;

  /** The answer is complete, or its reader has stopped. */
  protected abstract end(): void;

  /** The reader of the answer has stopped. */
  protected abstract leave(): void;
}

/** `Bun.serve` holds the head of an answer back until the first byte of the body, as Node does, and cannot flush it. */
function holdsHead(): boolean {
  return "Bun" in globalThis;
}

/** h3 recognises instances of the current global Response as answers, and hosts replace it, for example Hono on Node. */
function answerClass(): typeof Response {
  return FastResponse.prototype instanceof Response ? FastResponse : Response;
}
