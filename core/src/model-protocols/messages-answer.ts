import { Readable } from "node:stream";
import { orAborted } from "../kit/clock.ts";
import type { Clock } from "../ports/clock.ts";
import { type ModelAnswer, ModelTimeout } from "../ports/models.ts";
import { errorBody, errorStatus, upstreamFailure } from "./errors.ts";
import { writeExactly } from "./json.ts";
import type { ModelError, ModelEvent } from "./model-events.ts";
import { AnswerFailed, writeMessage } from "./write-answer.ts";
import { writeMessagesStream } from "./write-messages-stream.ts";

/** Batches of events, in the order of `ModelEvent`. The last event is `finish` or `error`. */
export type ModelEvents = AsyncIterable<readonly ModelEvent[]>;

/** What an answer of the Messages protocol says of itself. */
export interface MessagesAnswerOptions {
  /** The id of the message, such as `msg_1`. */
  readonly id: string;
  /** The name of the model, as the caller wrote it. */
  readonly model: string;
  /** Whether the request asked for a stream. */
  readonly isStream: boolean;
  /** Further headers of the answer, by lowercase name. */
  readonly headers?: ModelAnswer["headers"];
  /**
   * The time of a source that is silent. With it, a stream begins after 15 s without content, and gets a `ping` in every further 15 s of
   * silence: programs on the way to the caller close connections without bytes. Default: the stream waits for the source.
   */
  readonly clock?: Clock;
  /** Time without events after which the call fails with ModelTimeout, whose message is `message`. Needs `clock`. Default: no limit. */
  readonly silence?: { readonly ms: number; readonly message: string };
}

/** Silence after which a stream gets its head, and then keep-alives. */
const KEEP_ALIVE_MS = 15_000;
/** Maximum characters of a whole answer, which is gathered in memory. */
const WHOLE_CHARACTERS = 64 * 1024 * 1024;
/** Bytes of a stream that wait for a slow reader before the source must wait. */
const AHEAD_BYTES = 16 * 1024;
const ENDED = "The provider ended its answer early";

/**
 * Writes events as an answer of the Messages protocol, for a provider with a protocol of its own. `events` gets a signal that aborts when
 * `signal` does, when the reader leaves and when the answer has ended. A source that ignores the signal holds neither the call nor the body.
 * Resolves at the first event that says more than that the answer began, so that an error before any content becomes the status of the
 * answer. Rejects as `events` throws before that, and with the signal's reason. What it throws later breaks the body. The next events are
 * taken only when the reader has taken the earlier ones.
 */
export async function messagesAnswer(
  events: (signal: AbortSignal) => ModelEvents,
  options: MessagesAnswerOptions,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const source = new EventSource(events, options, signal);
  try {
    const begun: ModelEvent[] = [];
    while (!begun.some(hasContent)) {
      const batch = await source.next(options.isStream);
      if (batch === undefined) break;
      begun.push(...batch);
    }
    const failure = begun.find(hasContent);
    if (failure?.type === "error") {
      source.leave();
      return refusal(failure.error, options.headers);
    }
    if (!options.isStream) return wholeAnswer(await gathered(begun, source), options);
    // A stream whose source is still silent says which model answers.
    const body = new AnswerStream(source, begun.length > 0 ? begun : [{ type: "start" }], options);
    return { status: 200, headers: { ...options.headers, "content-type": "text/event-stream; charset=utf-8" }, body };
  } catch (error) {
    source.leave();
    throw error;
  }
}

/** The answer of a provider that refuses a call. */
export function refusal(error: ModelError, headers: ModelAnswer["headers"] = {}, status?: number): ModelAnswer {
  return whole(status ?? errorStatus("messages", error.kind), JSON.stringify(errorBody("messages", error)), headers);
}

/** The batches of one answer, until it ends or its reader leaves. */
class EventSource {
  readonly #options: MessagesAnswerOptions;
  readonly #signal: AbortSignal;
  readonly #left = new AbortController();
  readonly #batches: AsyncIterator<readonly ModelEvent[]>;
  /** The batch that was asked for and has not come yet. */
  #coming: Promise<IteratorResult<readonly ModelEvent[], unknown>> | undefined;
  #silentMs = 0;
  /** Is told when the caller leaves. */
  onAbort: (reason: Error) => void = () => {};

  constructor(events: (signal: AbortSignal) => ModelEvents, options: MessagesAnswerOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    signal.throwIfAborted();
    this.#batches = events(this.#left.signal)[Symbol.asyncIterator]();
    signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** The next batch. With `isPatient`, undefined after a time without one: then the same batch is still to come. */
  async next(isPatient: boolean): Promise<readonly ModelEvent[] | undefined> {
    this.#left.signal.throwIfAborted();
    this.#coming ??= orAborted(this.#batches.next(), this.#left.signal);
    const { clock, silence } = this.#options;
    const untilTimeout = silence ? silence.ms - this.#silentMs : Infinity;
    const ms = clock ? Math.min(untilTimeout, isPatient ? KEEP_ALIVE_MS : Infinity) : Infinity;
    const result = await within(this.#coming, ms, clock);
    if (result === undefined) {
      this.#silentMs += ms;
      if (ms < untilTimeout) return undefined;
      throw new ModelTimeout(silence!.message);
    }
    this.#coming = undefined;
    this.#silentMs = 0;
    return result.done ? [upstreamFailure(ENDED)] : result.value;
  }

  /** Ends the source, which may close what it opened. The answer does not wait for that. */
  leave(): void {
    this.#signal.removeEventListener("abort", this.#abort);
    if (this.#left.signal.aborted) return;
    this.#left.abort(new DOMException("The answer is over", "AbortError"));
    // The source of a generator that still works on a batch ends after that batch.
    new Promise((resolve) => resolve(this.#batches.return?.())).catch(() => {});
  }

  readonly #abort = (): void => {
    const reason: unknown = this.#signal.reason;
    this.#left.abort(reason);
    new Promise((resolve) => resolve(this.#batches.return?.())).catch(() => {});
    this.onAbort(asError(reason));
  };
}

/** The result, or undefined if it takes longer. */
function within<T>(work: Promise<T>, ms: number, clock: Clock | undefined): Promise<T | undefined> {
  if (!clock || ms === Infinity) return work;
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => resolve(undefined));
    const settle = (done: () => void) => {
      timer.cancel();
      done();
    };
    work.then(
      (result) => settle(() => resolve(result)),
      (error: unknown) => settle(() => reject(error as Error)),
    );
  });
}

/** Not `Readable.from`: that waits for the source before it closes. */
class AnswerStream extends Readable {
  readonly #source: EventSource;
  readonly #writer;
  #begun: readonly ModelEvent[] | undefined;

  constructor(source: EventSource, begun: readonly ModelEvent[], options: MessagesAnswerOptions) {
    super({ highWaterMark: AHEAD_BYTES });
    this.#source = source;
    this.#begun = begun;
    this.#writer = writeMessagesStream(options);
    // An error without a listener ends the process. Readers of the answer add their own.
    this.on("error", () => {});
    source.onAbort = (reason) => this.destroy(reason);
  }

  override _read(): void {
    this.#pull().catch((error: unknown) => this.destroy(asError(error)));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.leave();
    done(error);
  }

  async #pull(): Promise<void> {
    for (let text = ""; text === "";) {
      const events = this.#begun ?? (await this.#source.next(true));
      this.#begun = undefined;
      text = events === undefined ? this.#writer.keepAlive : this.#writer.write(events);
      if (text !== "") this.push(text);
      if (!events?.some(isOver)) continue;
      this.#source.leave();
      this.push(null);
      return;
    }
  }
}

function hasContent({ type }: ModelEvent): boolean {
  return type !== "start" && type !== "usage";
}

function isOver(event: ModelEvent): boolean {
  return event.type === "finish" || event.type === "error";
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException("The call was aborted", "AbortError");
}

async function gathered(begun: readonly ModelEvent[], source: EventSource): Promise<readonly ModelEvent[]> {
  const all: ModelEvent[] = [];
  let characters = 0;
  for (let batch = begun; ; batch = (await source.next(false)) ?? []) {
    for (const event of batch) {
      all.push(event);
      characters += lengthOf(event);
    }
    const isTooLong = characters > WHOLE_CHARACTERS;
    if (!isTooLong && !batch.some(isOver)) continue;
    source.leave();
    return isTooLong ? [upstreamFailure("The provider's answer is too long")] : all;
  }
}

/** Each event counts at least one character, so that an answer of empty events ends, too. */
function lengthOf(event: ModelEvent): number {
  if (event.type === "text" || event.type === "thinking" || event.type === "refusal") return event.text.length + 1;
  if (event.type === "tool-arguments") return event.json.length + 1;
  return event.type === "redacted-thinking" ? event.data.length + 1 : 1;
}

function wholeAnswer(events: readonly ModelEvent[], options: MessagesAnswerOptions): ModelAnswer {
  try {
    return whole(200, writeExactly(writeMessage(events, options)), options.headers ?? {});
  } catch (error) {
    if (error instanceof AnswerFailed) return refusal(error.error, options.headers);
    // JSON.parse accepts any depth, but JSON.stringify does not.
    if (error instanceof RangeError) return refusal({ kind: "upstream", message: TOO_DEEP }, options.headers);
    throw error;
  }
}

const TOO_DEEP = "The provider's answer is nested too deeply";

function whole(status: number, text: string, headers: ModelAnswer["headers"]): ModelAnswer {
  const bytes = Buffer.from(text);
  return {
    status,
    headers: { ...headers, "content-type": "application/json; charset=utf-8", "content-length": String(bytes.length) },
    body: Readable.from([bytes], { objectMode: false }),
    whole: bytes,
  };
}
