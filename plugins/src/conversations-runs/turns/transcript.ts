import type { ports } from "@portico/core";
import { TRANSCRIPT_FLUSH_MS, TRANSCRIPT_HELD } from "../limits.ts";
import { type TurnEvent, transcriptStream } from "./turn.ts";

/** One entry of a transcript's stream: events that were written down together. */
interface Piece {
  readonly events: readonly TurnEvent[];
}

/**
 * Everything that one turn tells its clients, in order. Positions count from 0. What is new is held for a moment and written down together;
 * what is written is read again for clients that come back, so that memory does not grow with the turn.
 */
export class Transcript {
  readonly #stream: string;
  readonly #given: { readonly log: ports.EventLog; readonly clock: ports.Clock; readonly told: (event: TurnEvent) => void };
  /** Events that are not written yet, and the position of the first of them. */
  #held: TurnEvent[] = [];
  #heldFrom = 0;
  #characters = 0;
  /** The position of the first event of each written piece. */
  readonly #pieces: number[] = [];
  #flushing: Promise<void> = Promise.resolve();
  #timer: ports.Timer | undefined;
  #failure: unknown;

  constructor(
    turnId: string,
    given: { readonly log: ports.EventLog; readonly clock: ports.Clock; readonly told: (event: TurnEvent) => void },
  ) {
    this.#stream = transcriptStream(turnId);
    this.#given = given;
  }

  /** How many events there are. */
  get position(): number {
    return this.#heldFrom + this.#held.length;
  }

  /** Tell and keep one event. Answers a promise where more is held than should be: wait for it before the next. */
  add(event: TurnEvent, size: number): void | Promise<void> {
    this.#held.push(event);
    this.#characters += size;
    this.#given.told(event);
    this.#timer ??= this.#given.clock.after(TRANSCRIPT_FLUSH_MS, () => {
      this.#timer = undefined;
      // The next that waits, or the end, is told.
      this.flush().catch(() => {});
    });
    if (this.#characters > TRANSCRIPT_HELD) return this.flush();
  }

  /** Resolves when everything so far is written. Throws LogUnavailable. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  /**
   * Keep the last events of the turn: `commit` gets the entry with which they are durable, to write it with the turn's end, and they are
   * told when it is done.
   */
  async end(
    events: readonly TurnEvent[],
    commit: (entry: { readonly stream: string; readonly entry: object }) => Promise<void>,
  ): Promise<void> {
    await this.#flushing.catch(() => {});
    this.stop();
    const last = [...this.#held, ...events];
    await commit({ stream: this.#stream, entry: { events: last } satisfies Piece });
    this.#pieces.push(this.#heldFrom);
    this.#heldFrom += last.length;
    this.#held = [];
    for (const event of events) this.#given.told(event);
  }

  /** Nothing is written any more. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#failure ??= new Error("The turn is over");
  }

  /** At most `limit` events from a position on; none where there are no more yet. */
  async page(position: number, limit: number): Promise<readonly TurnEvent[]> {
    if (position >= this.#heldFrom) return this.#held.slice(position - this.#heldFrom, position - this.#heldFrom + limit);
    const piece = this.#pieces.findLastIndex((first) => first <= position);
    for await (const entry of this.#given.log.read(this.#stream, { from: piece + 1, limit: 1 })) {
      const from = position - this.#pieces[piece]!;
      return eventsOf(entry).slice(from, from + limit);
    }
    return [];
  }

  async #write(): Promise<void> {
    if (this.#failure) throw this.#failure;
    this.#timer?.cancel();
    this.#timer = undefined;
    const count = this.#held.length;
    if (count === 0) return;
    this.#characters = 0;
    try {
      await this.#given.log.append(this.#stream, { events: this.#held.slice(0, count) } satisfies Piece);
    } catch (error) {
      // Whether it is there is unknown, and positions must not shift.
      this.#failure ??= error;
      throw error;
    }
    this.#pieces.push(this.#heldFrom);
    this.#heldFrom += count;
    this.#held = this.#held.slice(count);
  }
}

/** What a turn told until it ended or its process died. Damaged pieces are left out. */
export async function* readTranscript(log: ports.EventLog, turnId: string): AsyncIterable<TurnEvent> {
  for await (const entry of log.read(transcriptStream(turnId))) yield* eventsOf(entry);
}

function eventsOf(entry: ports.LogEntry): readonly TurnEvent[] {
  return entry.damaged ? [] : ((entry.entry as unknown as Piece).events ?? []);
}
