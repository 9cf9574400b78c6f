import { Readable } from "node:stream";
import type { Clock, Timer } from "../ports/clock.ts";
import { BODY_SILENCE_MS, BodyAlreadyRead, BodyCut, BodySilent, BodyTooLarge } from "./body.ts";

/**
 * A body that its handler reads while it arrives, with backpressure. It is open until the handler is done, also if the handler
 * returns something that continues, such as events.
 */
export interface StreamedBody {
  readonly headers: {
    /** The `Content-Type` of the request, one of those that the route accepts, with its parameters. */
    readonly contentType: string;
  };
  /**
   * The bytes as they arrive. Breaks with BodyTooLarge beyond the route's limit, BodyCut when the caller leaves, and BodySilent
   * when no more bytes arrive for a minute. If the handler rejects with one of these, the answer is the same as for any other
   * body.
   */
  readonly stream: Readable;
}

export interface StreamedBodyLimits {
  /** Bytes. One more byte breaks the stream, also if another length was declared. */
  readonly limit: number;
  readonly clock: Clock;
  /** Aborts when the caller leaves, for sources that do not report it. */
  readonly signal: AbortSignal;
}

/**
 * The stream of a StreamedBody over a host's source. Destroying it leaves the source paused and intact, so that an answer can
 * still be sent. It may break without a listener.
 */
export function limitBody(source: Readable, limits: StreamedBodyLimits): Readable {
  return new LimitedBody(source, limits);
}

class LimitedBody extends Readable {
  readonly #source: Readable;
  readonly #limits: StreamedBodyLimits;
  #size = 0;
  /** While our reader pauses the source, the silence is not the caller's. */
  #isHeldBack = true;
  #hasBegun = false;
  #silence: Timer | undefined;

  constructor(source: Readable, limits: StreamedBodyLimits) {
    super();
    this.#source = source;
    this.#limits = limits;
    this.on("error", ignore);
    source.on("error", this.#onError).on("close", this.#onClose);
    limits.signal.addEventListener("abort", this.#onClose, { once: true });
    if (source.readableEnded) this.destroy(new BodyAlreadyRead("The body was read before it came here"));
    else if (source.destroyed || limits.signal.aborted) this.#onClose();
  }

  override _read(): void {
    if (!this.#isHeldBack) return;
    this.#isHeldBack = false;
    this.#watch();
    if (this.#hasBegun) return void this.#source.resume();
    this.#hasBegun = true;
    this.#source.on("data", this.#onData).on("end", this.#onEnd);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#silence?.cancel();
    this.#limits.signal.removeEventListener("abort", this.#onClose);
    this.#source.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose).off("error", this.#onError);
    this.#source.on("error", ignore).pause();
    done(error);
  }

  readonly #onData = (chunk: Buffer) => {
    this.#size += chunk.length;
    if (this.#size > this.#limits.limit) {
      this.destroy(new BodyTooLarge(`The body is longer than ${this.#limits.limit} bytes`));
    } else if (this.push(chunk)) {
      this.#silence?.refresh();
    } else {
      this.#isHeldBack = true;
      this.#source.pause();
    }
  };

  readonly #onEnd = () => {
    this.#silence?.cancel();
    // A source that has ended also closes. That is not a cut.
    this.#limits.signal.removeEventListener("abort", this.#onClose);
    this.#source.off("close", this.#onClose);
    this.push(null);
  };

  readonly #onClose = () => void this.destroy(new BodyCut("The body ended before it was complete"));

  readonly #onError = (cause: Error) => void this.destroy(new BodyCut("The body ended before it was complete", { cause }));

  #watch(): void {
    if (this.#silence) return this.#silence.refresh();
    this.#silence = this.#limits.clock.after(BODY_SILENCE_MS, () => {
      this.#silence = undefined;
      if (!this.#isHeldBack) this.destroy(new BodySilent("The body stopped arriving"));
    });
  }
}

function ignore(): void {}
