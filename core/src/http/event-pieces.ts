import type { Clock } from "../ports/clock.ts";
import type { ReconnectTime } from "../grammar/contract.ts";
import type { Pieces } from "./pieces.ts";

/**
 * After this time without an event, readers are sent a comment, which they ignore. Proxies and load balancers cut connections
 * that are silent for a minute, some after 30 s. Writing is also the only way to notice a reader that disappeared.
 */
export const KEEP_ALIVE_MS = 15_000;

/** Headers of every event stream. Caches do not keep it, and proxies that buffer by default (nginx) pass it on at once. */
export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Whether an answer with this `content-type` is an event stream. */
export function isEventStream(contentType: string | readonly string[] | undefined): boolean {
  return typeof contentType === "string" && contentType.startsWith("text/event-stream");
}

/** Callbacks of the answer around its events. */
export interface EventAnswer {
  /** The service ends the stream before its source has ended. */
  stopped(reason: DOMException): void;
  /** The source failed. Returns the JSON that is sent as a last event named `error`. */
  render(error: unknown): string;
}

interface Around {
  readonly clock: Clock;
  readonly streams: EventStreams;
}

type Item = { readonly event: string; readonly data: unknown; readonly id?: string | undefined } | ReconnectTime;
type Given = { readonly step: IteratorResult<Item> } | { readonly error: unknown };

/** The source of an event stream failed. The reader was told by an event, and `render` has logged it. */
export class EventsBroken extends Error {
  override readonly name = "EventsBroken";
}

/**
 * Named events as server-sent events. One event is made per piece, so that a slow reader slows the source down. A comment is made
 * only for a reader that waits. When the reader leaves, the source's `return` runs. If the source throws, the reader gets an
 * event `error`, and then the pieces break: it never looks like a normal end.
 */
export class EventPieces implements Pieces {
  readonly #iterator: AsyncIterator<Item>;
  readonly #answer: EventAnswer;
  readonly #around: Around;
  #state: "new" | "open" | "broken" | "over" = "new";
  #leaveStreams = () => {};
  /** The source is asked once for each event, no matter how many comments are sent meanwhile. */
  #isAsked = false;
  #given: Given | undefined;
  #wake = () => {};

  constructor(events: AsyncIterable<Item>, answer: EventAnswer, around: Around) {
    this.#iterator = events[Symbol.asyncIterator]();
    this.#answer = answer;
    this.#around = around;
  }

  async next(): Promise<string | undefined> {
    if (this.#state === "broken") {
      // Node writes at the end of the turn. If the connection were cut in the same turn, the last event would be lost.
      await new Promise((resolve) => setImmediate(resolve));
      throw new EventsBroken("The source of the events broke");
    }
    if (this.#state === "new") this.#open();
    if (this.#isOver()) return undefined;
    if (!this.#isAsked) void this.#ask();
    if (!this.#given) await this.#wait();
    if (this.#isOver()) return undefined;
    const given = this.#given;
    if (!given) return ": keep-alive\n\n";
    this.#given = undefined;
    this.#isAsked = false;
    return this.#piece(given);
  }

  async leave(): Promise<void> {
    if (this.#state === "over" || this.#state === "broken") return;
    this.#close("over");
    await this.#iterator.return?.();
  }

  #piece(given: Given): string | undefined {
    try {
      if ("error" in given) throw given.error;
      if (given.step.done) {
        this.#close("over");
        return undefined;
      }
      return frameOf(given.step.value);
    } catch (error) {
      this.#close("broken");
      return frame("error", this.#answer.render(error));
    }
  }

  #open(): void {
    this.#state = "open";
    this.#leaveStreams = this.#around.streams.add(() => {
      this.#answer.stopped(new DOMException("The service stops", "AbortError"));
      // An error after the stream has lost its reader is not a fault.
      this.leave().catch(() => {});
    });
    if (this.#isOver()) this.#leaveStreams();
  }

  #close(last: "over" | "broken"): void {
    this.#state = last;
    this.#leaveStreams();
    this.#wake();
  }

  #isOver(): boolean {
    return this.#state === "over";
  }

  async #ask(): Promise<void> {
    this.#isAsked = true;
    try {
      this.#given = { step: await this.#iterator.next() };
    } catch (error) {
      this.#given = { error };
    }
    this.#wake();
  }

  /** Resolves when the source has given a result, when the stream has ended, or when a comment is due. */
  #wait(): Promise<void> {
    return new Promise<void>((resolve) => {
      const timer = this.#around.clock.after(KEEP_ALIVE_MS, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

function frameOf(item: Item): string {
  if ("retryMs" in item) return `retry: ${item.retryMs}\n\n`;
  const { event, data, id } = item;
  const framed = frame(event, JSON.stringify(data));
  if (id === undefined) return framed;
  if (/[\0\r\n]/.test(id)) throw new TypeError("The id of an event contains a line break");
  return `id: ${id}\n${framed}`;
}

function frame(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`;
}

/** The open event streams of one surface. Without `end`, they end with their source or reader, which may be never. */
export class EventStreams {
  readonly #open = new Set<() => void>();
  readonly #ended = new AbortController();

  /** Aborts at `end`: for answers that wait for something, too. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Adds an open stream. `end` is called once to end it. Returns a function for the answer to call when the stream has ended. */
  add(end: () => void): () => void {
    if (this.ended.aborted) end();
    else this.#open.add(end);
    return () => void this.#open.delete(end);
  }

  /** End all open streams, and from now on every new one at once. */
  end(): void {
    this.#ended.abort();
    for (const end of this.#open) end();
  }
}
