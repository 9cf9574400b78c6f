import { Readable } from "node:stream";
import type { Dispatcher } from "undici/index.js";
import { openConnections } from "../../outbound/open-connections.ts";
import type { OutboundOptions } from "../../outbound/outbound-options.ts";
import type { Upstream } from "./upstream.ts";
import { type CallEnds, UpstreamCall, type UpstreamTarget } from "./upstream-call.ts";

/** Connections of undici: pooled, kept alive, and closed with the provider. */
export function createUndiciUpstream(target: UpstreamTarget, outbound?: OutboundOptions): Upstream {
  const { origin } = target;
  const { connectMs } = target.timeouts;
  let opening: Promise<Dispatcher> | undefined;
  let pool: Dispatcher | undefined;
  // The call has the timeouts of head and body: undici's default is 300 s, and a reasoning model may be silent for longer.
  const open = () =>
    (opening ??= openConnections({ outbound, origin, connectMs, headersMs: 0, idleMs: 0 }).then((opened) => (pool = opened)));
  return {
    request: ({ method, path, headers, body }, signal) =>
      new Promise((resolve, reject) => {
        const upload = body instanceof Readable ? body : undefined;
        const call = new UndiciCall(target, { upload, signal, resolve, reject });
        // A caller who has left already causes no upstream connection.
        if (call.isOver) return;
        const dispatch = (into: Dispatcher) => {
          if (call.isOver) return;
          into.dispatch({ origin, method, path, headers: headers as Record<string, string>, body: body ?? null }, call);
        };
        if (pool) dispatch(pool);
        else open().then(dispatch, (cause: Error) => call.onResponseError(undefined, cause));
      }),
    // The host has already waited for requests with calls in progress. Remaining calls are cut.
    async close() {
      const last = opening;
      pool = undefined;
      opening = Promise.reject(new Error("The provider is closed"));
      opening.catch(() => {});
      await (await last)?.destroy();
    },
  };
}

interface ArrivingAnswer {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly chunks: Buffer[];
}

/** One call: a dispatch handler whose answer body is a Node stream with backpressure in both directions. */
class UndiciCall extends UpstreamCall implements Dispatcher.DispatchHandler {
  readonly #upload: Readable | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** The head and the first chunks of the answer, until they are passed on. */
  #arriving: ArrivingAnswer | undefined;
  #answer: AnswerBody | undefined;
  #isSent = false;

  constructor(target: UpstreamTarget, ends: CallEnds) {
    super(target, ends);
    this.#upload = ends.upload;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.failure) controller.abort(this.failure);
  }

  /** The upstream is not late while the request is still being sent. */
  onBodySent(): void {
    this.progressed();
  }

  onRequestSent(): void {
    this.#isSent = true;
    this.progressed();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[]>): void {
    if (status < 200 || this.isOver) return;
    this.#arriving = { status, headers, chunks: [] };
    // undici passes on everything that arrived in one piece before this runs. Most small answers are complete then.
    process.nextTick(this.#deliver);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.progressed();
    if (this.#arriving) this.#arriving.chunks.push(chunk);
    else if (this.#answer?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    const arriving = this.#arriving;
    if (arriving) {
      this.#arriving = undefined;
      const { status, headers, chunks } = arriving;
      return this.answeredWhole(status, headers, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    }
    this.settle();
    this.#answer?.push(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#deliver();
    this.fail(cause);
  }

  /** Passes on the head and a stream of the body, unless the answer is complete or was passed on before. */
  readonly #deliver = (): void => {
    const arriving = this.#arriving;
    const controller = this.#controller;
    this.#arriving = undefined;
    if (!arriving || !controller || this.isOver) return;
    const answer = new AnswerBody(
      controller,
      () => this.progressed(),
      () => this.settle(),
    );
    this.#answer = answer;
    this.answered(arriving.status, arriving.headers, answer);
    for (const chunk of arriving.chunks) if (!answer.push(chunk)) controller.pause();
  };

  protected override cut(error: Error): void {
    this.#controller?.abort(error);
  }

  protected override isSenderLate(): boolean {
    return this.#upload !== undefined && this.#controller !== undefined && !this.#isSent && !this.#upload.isPaused();
  }

  protected override isReaderLate(): boolean {
    return this.#controller?.paused === true;
  }

  protected override describeFailure(): string {
    return this.#controller ? "closed the connection before it answered" : "could not be reached";
  }
}

/** The body of an answer. Destroying it before its end closes the connection, so that the upstream stops its work. */
class AnswerBody extends Readable {
  readonly #controller: Dispatcher.DispatchController;
  readonly #resumed: () => void;
  readonly #closed: () => void;

  constructor(controller: Dispatcher.DispatchController, resumed: () => void, closed: () => void) {
    super();
    this.#controller = controller;
    this.#resumed = resumed;
    this.#closed = closed;
  }

  override _read(): void {
    if (!this.#controller.paused) return;
    this.#resumed();
    this.#controller.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#closed();
    if (!this.readableEnded) this.#controller.abort(error ?? new DOMException("The answer is not wanted any more", "AbortError"));
    callback(error);
  }
}
