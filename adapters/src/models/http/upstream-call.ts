import type { Readable } from "node:stream";
import { ports } from "@portico/core";
import { abortError } from "../abort-error.ts";
import type { ProviderTimeouts } from "../http-options.ts";
import { WholeAnswer } from "./whole-answer.ts";

/** The provider that a call is for. */
export interface UpstreamTarget {
  /** Provider ID, for error messages. */
  readonly name: string;
  readonly origin: string;
  readonly timeouts: ProviderTimeouts;
  readonly clock: ports.Clock;
}

/** The two ends of a call: its request, if that is a stream, and the code that waits for the answer. */
export interface CallEnds {
  /** Never left open. */
  readonly upload: Readable | undefined;
  readonly signal: AbortSignal | undefined;
  resolve(answer: ports.ModelAnswer): void;
  reject(error: Error): void;
}

/**
 * One call to an upstream, independent of the client that sends it. It fails at once when its signal aborts and when the upstream exceeds a
 * timeout. A subclass reports the progress of its client.
 */
export abstract class UpstreamCall {
  readonly #target: UpstreamTarget;
  readonly #ends: CallEnds;
  #timer: ports.Timer;
  #answer: Readable | undefined;
  #failure: Error | undefined;

  constructor(target: UpstreamTarget, ends: CallEnds) {
    this.#target = target;
    this.#ends = ends;
    this.#timer = this.#awaitHead();
    ends.signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (!ends.signal?.aborted) return;
    // Methods of the subclass cannot be called yet.
    this.#failure = abortError(ends.signal);
    this.#settle();
    this.#end(this.#failure);
  }

  /** The call was ended from this side. */
  get isOver(): boolean {
    return this.#failure !== undefined;
  }

  /** End the exchange on the wire. Called once at most. */
  protected abstract cut(error: Error): void;

  /** Whether the next byte is missing from the request itself, and not blocked by the upstream. */
  protected abstract isSenderLate(): boolean;

  /** Whether the reader of the answer takes no more bytes for now. */
  protected abstract isReaderLate(): boolean;

  /** What failed before the head of the answer, for the error message. */
  protected abstract describeFailure(): string;

  protected get failure(): Error | undefined {
    return this.#failure;
  }

  /** A part of the request was sent, or a part of the answer was received. */
  protected progressed(): void {
    this.#timer.refresh();
  }

  protected answered(status: number, headers: ports.ModelAnswer["headers"], body: Readable): void {
    this.#timer.cancel();
    this.#timer = this.#awaitMore();
    this.#answer = body;
    // An error without any listener ends the process. Readers of the answer add their own.
    body.on("error", () => {});
    this.#ends.resolve({ status, headers, body });
  }

  /** The answer is complete. The call has no timeout and no signal after this. */
  protected answeredWhole(status: number, headers: ports.ModelAnswer["headers"], bytes: Buffer): void {
    this.settle();
    this.#ends.resolve(new WholeAnswer(status, headers, bytes));
  }

  /** Nothing more is expected: the answer is complete, failed, or has lost its reader. */
  protected settle(): void {
    this.#settle();
  }

  /** The client failed with this error. */
  protected fail(cause: Error): void {
    this.settle();
    this.#end(this.#failure ?? this.#translate(cause));
  }

  readonly #onAbort = (): void => {
    if (this.#ends.signal) this.#stop(abortError(this.#ends.signal));
  };

  /** End the call from this side at once, in any state, also while it waits for a connection. */
  #stop(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.settle();
    this.cut(error);
    this.#end(error);
  }

  #settle(): void {
    this.#timer.cancel();
    this.#ends.signal?.removeEventListener("abort", this.#onAbort);
  }

  #end(error: Error): void {
    this.#ends.upload?.destroy();
    if (this.#answer) this.#answer.destroy(error);
    else this.#ends.reject(error);
  }

  #awaitHead(): ports.Timer {
    const { name, timeouts, clock } = this.#target;
    return clock.after(timeouts.headersMs, () => {
      if (this.isSenderLate()) this.#timer = this.#awaitHead();
      else this.#stop(new ports.ModelTimeout(`Provider "${name}" did not answer in time`));
    });
  }

  #awaitMore(): ports.Timer {
    const { name, timeouts, clock } = this.#target;
    return clock.after(timeouts.idleMs, () => {
      // If a reader pauses the stream, the upstream is not silent.
      if (this.isReaderLate()) this.#timer = this.#awaitMore();
      else this.#stop(new ports.ModelTimeout(`Provider "${name}" stopped answering`));
    });
  }

  /** The cause's message names an address, so only its code is used. */
  #translate(cause: Error): Error {
    const { name } = this.#target;
    const code = codeOf(cause) ?? codeOf(cause.cause);
    if (code === "UND_ERR_CONNECT_TIMEOUT")
      return new ports.ModelTimeout(`Provider "${name}" could not be connected to in time`, { cause });
    const failed = this.#answer ? "ended its answer early" : this.describeFailure();
    return new ports.ModelUnreachable(`Provider "${name}" ${failed}${code ? ` (${code})` : ""}`, { cause });
  }
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}
