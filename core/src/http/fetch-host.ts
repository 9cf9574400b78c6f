import type { IncomingMessage, ServerResponse } from "node:http";
import { PassThrough, Readable, type Writable } from "node:stream";
import type { ServerRequest } from "srvx";
import type { RequestHead } from "../grammar/contract.ts";
import type { Clock } from "../ports/clock.ts";
import { type AnswerHeaders, CALLER_LEFT } from "./answer-headers.ts";
import { HostAdapter } from "./host-adapter.ts";
import { abandon, linger } from "./linger.ts";
import { toWebStream } from "./streams.ts";
import { type RawParams, searchOf, type SurfaceEvent } from "./surface-event.ts";

/** A request of a fetch host. */
export class FetchHost extends HostAdapter {
  readonly head: RequestHead;
  readonly #node: { readonly req: IncomingMessage; readonly res?: ServerResponse } | undefined;
  readonly #controller = new AbortController();
  #isReaderGone = false;
  #isDropped = false;
  #body: Readable | undefined;
  #written: PassThrough | undefined;
  #over: ((status: number) => void) | undefined;

  constructor(event: SurfaceEvent, raw: RawParams) {
    super(event, raw);
    const { req: request, target } = event;
    const { params } = this;
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

  onOver(over: (status: number) => void): void {
    this.#over = over;
  }

  open(status: number, headers: AnswerHeaders): Writable {
    if (this.isAnswered) throw new Error("respond() was called twice");
    const answer = new PassThrough();
    const isBodyless = this.isBodyless(status);
    this.answer(status, headers, isBodyless ? null : toWebStream(answer));
    if (isBodyless) answer.resume();
    // A stream that breaks without a listener is an uncaught exception. The stream itself tells the reader of the answer.
    answer.on("error", () => {});
    answer.once("close", () => {
      if (answer.readableEnded) this.end();
      else this.leave();
    });
    this.break = (error) => void answer.destroy(error as Error);
    this.#written = answer;
    return answer;
  }

  override cut(error: unknown): void {
    const isOpen = this.isAnswered && !this.#isReaderGone;
    super.cut(error);
    if (isOpen) this.leave();
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

  protected end(): void {
    this.#over?.(this.status ?? CALLER_LEFT);
    this.#over = undefined;
  }

  protected leave(): void {
    this.#isReaderGone = true;
    this.abort(new DOMException("The caller went away", "AbortError"));
    this.end();
  }

  protected flushHead(): void {
    const response = this.#node?.res;
    if (response?.headersSent) response.flushHeaders();
  }

  /** A fetch host may report that the caller left by the request's signal, by the answer's stream, or by both. */
  #followSignal(signal: AbortSignal): void {
    if (signal.aborted) this.abort(signal.reason as DOMException);
    else signal.addEventListener("abort", () => this.abort(signal.reason as DOMException), { once: true });
  }
}
