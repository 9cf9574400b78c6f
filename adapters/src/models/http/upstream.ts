import { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { Dispatcher, Pool } from "undici";
import { abortError } from "../abort-error.ts";
import type { ProviderTimeouts } from "./provider-options.ts";

export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  /** Path and query, from the origin. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | Readable | undefined;
}

/** Connections to one provider: pooled, kept alive, with only this provider's timeouts. */
export interface Upstream {
  request(request: UpstreamRequest, signal: AbortSignal | undefined): Promise<ports.ModelAnswer>;
  close(): Promise<void>;
}

export function createUpstream(name: string, origin: string, timeouts: ProviderTimeouts, clock: ports.Clock): Upstream {
  let opened: Promise<Pool> | undefined;
  // Loading undici takes twice as long as starting Node.js, so the first call loads it.
  const open = () => (opened ??= openPool(origin, timeouts));
  return {
    request: (request, signal) =>
      new Promise((resolve, reject) => {
        const { method, path, headers, body } = request;
        const upload = body instanceof Readable ? body : undefined;
        const call = new UpstreamCall(name, timeouts, clock, upload, signal, resolve, reject);
        // A caller who has left already causes no upstream connection.
        if (call.isOver) return;
        open().then(
          (pool) => {
            if (call.isOver) return;
            pool.dispatch({ origin, method, path, headers: headers as Record<string, string>, body: body ?? null }, call);
          },
          (cause: Error) => call.onResponseError(undefined, cause),
        );
      }),
    // The host has already waited for requests with calls in progress. Remaining calls are cut.
    async close() {
      const pool = opened;
      opened = Promise.reject(new Error("The provider is closed"));
      opened.catch(() => {});
      await (await pool)?.destroy();
    },
  };
}

/** undici's own timeouts of head and body are disabled: they default to 300 s, and a reasoning model may be silent for longer. */
async function openPool(origin: string, { connectMs }: ProviderTimeouts): Promise<Pool> {
  const { Pool } = await import("undici");
  return new Pool(origin, { connect: { timeout: connectMs }, headersTimeout: 0, bodyTimeout: 0, allowH2: false });
}

/** One call: a dispatch handler whose answer body is a Node stream with backpressure in both directions. */
class UpstreamCall implements Dispatcher.DispatchHandler {
  readonly #name: string;
  readonly #timeouts: ProviderTimeouts;
  /** The request's body, if it is a stream. It is never left open. */
  readonly #upload: Readable | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #resolve: (answer: ports.ModelAnswer) => void;
  readonly #reject: (error: Error) => void;
  readonly #clock: ports.Clock;
  #timer: ports.Timer;
  #controller: Dispatcher.DispatchController | undefined;
  #answer: AnswerBody | undefined;
  #failure: Error | undefined;
  #isSent = false;

  constructor(
    name: string,
    timeouts: ProviderTimeouts,
    clock: ports.Clock,
    upload: Readable | undefined,
    signal: AbortSignal | undefined,
    resolve: (answer: ports.ModelAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#name = name;
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#upload = upload;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#timer = this.#awaitHead();
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get isOver(): boolean {
    return this.#failure !== undefined;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure) controller.abort(this.#failure);
  }

  /** The upstream is not late while the request is still being sent. */
  onBodySent(): void {
    this.#timer.refresh();
  }

  onRequestSent(): void {
    this.#isSent = true;
    this.#timer.refresh();
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[]>): void {
    if (status < 200 || this.#failure) return;
    this.#timer.cancel();
    this.#timer = this.#awaitMore(controller);
    this.#answer = new AnswerBody(
      controller,
      () => this.#timer.refresh(),
      () => this.#settle(),
    );
    this.#resolve({ status, headers, body: this.#answer });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#timer.refresh();
    if (this.#answer?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#settle();
    this.#answer?.push(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#settle();
    this.#upload?.destroy();
    const error = this.#failure ?? this.#translate(cause);
    if (this.#answer) this.#answer.destroy(error);
    else this.#reject(error);
  }

  readonly #onAbort = (): void => {
    if (this.#signal) this.#stop(abortError(this.#signal));
  };

  /** End the call from this side at once, in any state, also while it waits for a connection. */
  #stop(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#settle();
    this.#controller?.abort(error);
    this.#upload?.destroy();
    if (this.#answer) this.#answer.destroy(error);
    else this.#reject(error);
  }

  #awaitHead(): ports.Timer {
    return this.#clock.after(this.#timeouts.headersMs, () => {
      if (this.#isSenderLate()) this.#timer = this.#awaitHead();
      else this.#stop(new ports.ModelTimeout(`Provider "${this.#name}" did not answer in time`));
    });
  }

  /** Whether the next byte is missing from the request itself, and not blocked by the upstream. */
  #isSenderLate(): boolean {
    return this.#upload !== undefined && this.#controller !== undefined && !this.#isSent && !this.#upload.isPaused();
  }

  #awaitMore(controller: Dispatcher.DispatchController): ports.Timer {
    return this.#clock.after(this.#timeouts.idleMs, () => {
      // If a reader pauses the stream, the upstream is not silent.
      if (controller.paused) this.#timer = this.#awaitMore(controller);
      else this.#stop(new ports.ModelTimeout(`Provider "${this.#name}" stopped answering`));
    });
  }

  #settle(): void {
    this.#timer.cancel();
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }

  /** Progress of the call when its connection broke or could not be made. */
  #break(): string {
    if (this.#answer) return "broke its answer off";
    return this.#controller ? "closed the connection before it answered" : "could not be reached";
  }

  /** The cause's message names an address, so only its code is used. */
  #translate(cause: Error): Error {
    const code = (cause as { code?: string }).code;
    if (code === "UND_ERR_CONNECT_TIMEOUT")
      return new ports.ModelTimeout(`Provider "${this.#name}" could not be connected to in time`, { cause });
    return new ports.ModelUnreachable(`Provider "${this.#name}" ${this.#break()}${code ? ` (${code})` : ""}`, { cause });
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
