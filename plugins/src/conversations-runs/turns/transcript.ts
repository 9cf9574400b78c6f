import type { ports } from "@portico/core";
import { TRANSCRIPT_FLUSH_MS, TRANSCRIPT_UNWRITTEN, TRANSCRIPT_PIECE_CHARACTERS } from "../limits.ts";
import { type TurnEvent, transcriptStream } from "./turn.ts";
import { type OwnershipCondition, whileOwned } from "./while-owned.ts";

/** One entry of a transcript's stream: events that were written down together, or a part of what a waiting turn keeps. */
interface Piece {
  readonly events: readonly TurnEvent[];
  readonly kept?: StatePiece | undefined;
}

/** A part of the text that a turn keeps while it waits. */
export interface StatePiece {
  /** The turn's wait that it belongs to. */
  readonly wait: number;
  readonly text: string;
}

/** An event that is not written down yet, and about how many characters it takes. */
interface Unwritten {
  readonly event: TurnEvent;
  readonly size: number;
}

/** A written piece: the position of its first event, and its sequence number in the stream. */
export interface Written {
  readonly first: number;
  readonly sequence: number;
}

export interface TranscriptGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  /** With it, nothing is written after another process was given the turn. */
  readonly ownership: OwnershipCondition;
  /** Told of each event when it is there, with its position and about how many characters it takes. */
  readonly notify: (event: TurnEvent, position: number, size: number) => void;
  /** What is written of a turn that goes on after a wait, and its number of events. */
  readonly before?: { readonly written: readonly Written[]; readonly position: number } | undefined;
}

/**
 * Everything that one turn tells its clients, in order. Positions count from 0. What is new is held for a moment and written down together;
 * what is written is read again for clients that come back, so that memory does not grow with the turn.
 */
export class Transcript {
  readonly #stream: string;
  readonly #given: TranscriptGiven;
  #unwritten: Unwritten[] = [];
  #unwrittenFrom = 0;
  #characters = 0;
  readonly #written: Written[] = [];
  #flushing: Promise<void> = Promise.resolve();
  #timer: ports.Timer | undefined;
  /** How many of the held events were on their way when the log failed: they may be written, and its answer lost. */
  #uncertain = 0;
  #isOver = false;

  constructor(turnId: string, given: TranscriptGiven) {
    this.#stream = transcriptStream(turnId);
    this.#given = given;
    if (!given.before) return;
    this.#written.push(...given.before.written);
    this.#unwrittenFrom = given.before.position;
  }

  /** How many events there are. */
  get position(): number {
    return this.#unwrittenFrom + this.#unwritten.length;
  }

  /** Whether nothing is taken any more: the turn has come to its end, whatever its engine still says. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Tell and keep one event. Answers a promise where more is held than should be: wait for it before the next. */
  add(event: TurnEvent, size: number): void | Promise<void> {
    if (this.#isOver) return;
    this.#unwritten.push({ event, size });
    this.#characters += size;
    this.#given.notify(event, this.position - 1, size);
    this.#timer ??= this.#given.clock.after(untilNextFlush(this.#given.clock.now()), () => {
      this.#timer = undefined;
      void this.flush();
    });
    if (this.#characters > TRANSCRIPT_UNWRITTEN) return this.flush();
  }

  /** Resolves when everything so far is written. Rejects with LogUnavailable, and may be called again. Its result may be ignored. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#write());
    this.#flushing.catch(() => {});
    return this.#flushing;
  }

  /**
   * Keep the last events of the turn, or those before it waits: `commit` gets the entry with which they are durable, to write it with the
   * turn's end or wait, and they are told when it is done. May be tried again; answers the sequence number of the entry.
   */
  async end(
    events: readonly TurnEvent[],
    commit: (entry: { readonly stream: string; readonly entry: object }) => Promise<number | undefined>,
  ): Promise<void> {
    this.stop();
    await this.#flushing.catch(() => {});
    // Several pieces' worth may wait where the log was away, and some of it may be there: that goes first.
    if (this.#uncertain > 0 || sizeOf(this.#unwritten) > TRANSCRIPT_PIECE_CHARACTERS) await this.#write();
    const first = this.#unwrittenFrom;
    const sequence = await commit({
      stream: this.#stream,
      entry: { events: [...this.#unwritten.map(({ event }) => event), ...events] } satisfies Piece,
    });
    if (sequence !== undefined) this.#written.push({ first, sequence });
    this.#unwrittenFrom += this.#unwritten.length + events.length;
    const position = this.#unwrittenFrom - events.length;
    this.#unwritten = [];
    for (const [at, event] of events.entries()) this.#given.notify(event, position + at, JSON.stringify(event.data).length);
  }

  /** Drops the events that no store accepts. The end of the turn is then written without them. */
  dropUnwritten(): void {
    this.#unwritten = [];
    this.#characters = 0;
    this.#uncertain = 0;
  }

  /** Nothing is taken any more. */
  stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Resolves when nothing is on its way to the log. */
  async settled(): Promise<void> {
    await this.#flushing.catch(() => {});
  }

  /** Whether something of it may be written down. */
  get isWritten(): boolean {
    return this.#written.length > 0 || this.#uncertain > 0;
  }

  /** Nothing is taken any more, and nothing stays written. Rejects with LogUnavailable. */
  async remove(): Promise<void> {
    this.stop();
    await this.#flushing.catch(() => {});
    if (this.isWritten) await this.#given.log.remove(this.#stream);
  }

  /**
   * Some events from a position on, and the position behind them; the same position where there are no more yet. Events that cannot be read
   * any more are left out. Rejects with LogUnavailable.
   */
  async page(position: number): Promise<{ readonly events: readonly TurnEvent[]; readonly next: number }> {
    if (position >= this.#unwrittenFrom) {
      const events = this.#unwritten.slice(position - this.#unwrittenFrom).map(({ event }) => event);
      return { events, next: position + events.length };
    }
    const at = this.#written.findLastIndex(({ first }) => first <= position);
    const piece = this.#written[at];
    const next = this.#written[at + 1]?.first ?? this.#unwrittenFrom;
    if (!piece) return { events: [], next: this.#written[0]?.first ?? this.#unwrittenFrom };
    for await (const entry of this.#given.log.read(this.#stream, { from: piece.sequence, limit: 1 })) {
      return { events: eventsOf(entry).slice(position - piece.first), next };
    }
    return { events: [], next };
  }

  async #write(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (let count = this.#unwritten.length; count > 0;) {
      const piece = this.#uncertain > 0 ? this.#unwritten.slice(0, this.#uncertain) : this.#nextPiece(count);
      // Where the log fails, whether it is there is unknown; written again, it might be there twice.
      const found = this.#uncertain > 0 ? await this.#found() : undefined;
      this.#uncertain = piece.length;
      const entry: Piece = { events: piece.map(({ event }) => event) };
      const sequence = found ?? (await this.#append(entry));
      this.#uncertain = 0;
      this.#written.push({ first: this.#unwrittenFrom, sequence });
      this.#unwrittenFrom += piece.length;
      this.#unwritten = this.#unwritten.slice(piece.length);
      this.#characters -= sizeOf(piece);
      count -= piece.length;
    }
  }

  async #append(entry: Piece): Promise<number> {
    const { log, ownership } = this.#given;
    if (!ownership) return log.append(this.#stream, entry);
    const [sequence] = await whileOwned(ownership, (records) => log.appendAll([{ stream: this.#stream, entry }], { records }));
    return sequence!;
  }

  #nextPiece(most: number): readonly Unwritten[] {
    const piece: Unwritten[] = [];
    for (let size = 0; piece.length < most && size <= TRANSCRIPT_PIECE_CHARACTERS;) {
      const event = this.#unwritten[piece.length]!;
      piece.push(event);
      size += event.size;
    }
    return piece;
  }

  /** The sequence number of the piece that was on its way, where it arrived: nothing else writes into this stream meanwhile. */
  async #found(): Promise<number | undefined> {
    const count = await this.#given.log.count(this.#stream);
    return count > (this.#written.at(-1)?.sequence ?? 0) ? count : undefined;
  }
}

/** What a turn told until it ended or its process died. Damaged pieces are left out. */
export async function* readTranscript(log: ports.EventLog, turnId: string): AsyncIterable<TurnEvent> {
  for await (const entry of log.read(transcriptStream(turnId))) yield* eventsOf(entry);
}

/** All transcripts are written at the same instants: what a thousand turns said shares a commit. */
function untilNextFlush(now: number): number {
  return TRANSCRIPT_FLUSH_MS - (now % TRANSCRIPT_FLUSH_MS);
}

function sizeOf(events: readonly Unwritten[]): number {
  return events.reduce((sum, { size }) => sum + size, 0);
}

/** The events of one entry of a transcript's stream; none of a damaged one. */
export function eventsOf(entry: ports.LogEntry): readonly TurnEvent[] {
  return entry.damaged ? [] : ((entry.entry as unknown as Piece).events ?? []);
}

/** The part of a waiting turn that an entry keeps. */
export function statePieceOf(entry: ports.LogEntry): StatePiece | undefined {
  return entry.damaged ? undefined : (entry.entry as unknown as Piece).kept;
}
