import type { ports } from "@portico/core";
import { FOLLOWED_CHARACTERS, FOLLOWED_PATIENCE, TRANSCRIPT_FLUSH_MS } from "../limits.ts";
import { eventsOf } from "../turns/transcript.ts";
import { type TurnEvent, transcriptStream } from "../turns/turn.ts";
import { isEnd } from "./missing.ts";

/** A piece of the log: the position of its first event and the position behind its last. */
interface Piece {
  readonly first: number;
  readonly next: number;
  readonly sequence: number;
}

export interface FollowedTranscriptGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  /** Called whenever the log was looked at: there may be more events, or the end. */
  readonly looked: () => void;
}

/**
 * The events of a turn that executes in another process: the written events, and after them the events that process sent and may not have
 * written yet. Positions count from 0, as in the transcript itself.
 */
export class FollowedTranscript {
  readonly #stream: string;
  readonly #given: FollowedTranscriptGiven;
  readonly #pieces: Piece[] = [];
  /** The last sent events, without a gap. Older events are in the log. */
  #received: { readonly event: TurnEvent; readonly size: number }[] = [];
  #receivedFrom = 0;
  #receivedCharacters = 0;
  #hasEnd = false;
  #hasLooked = false;
  #looking: Promise<void> | undefined;

  constructor(turnId: string, given: FollowedTranscriptGiven) {
    this.#stream = transcriptStream(turnId);
    this.#given = given;
  }

  /** How many events are known. */
  get position(): number {
    // After its end, a turn whose process died may have sent more events than are written.
    return this.#hasEnd ? this.#written : Math.max(this.#receivedFrom + this.#received.length, this.#written);
  }

  /** Whether the end of the turn is written. */
  get hasEnd(): boolean {
    return this.#hasEnd;
  }

  /** Add a sent event. Returns false if it was known before. */
  hear(event: TurnEvent, position: number, size: number): boolean {
    if (position < this.position || this.#hasEnd) return false;
    if (position !== this.#receivedFrom + this.#received.length) {
      // The events in between are in the log, or will be soon.
      [this.#received, this.#receivedFrom, this.#receivedCharacters] = [[], position, 0];
    }
    this.#received.push({ event, size });
    this.#receivedCharacters += size;
    while (this.#receivedCharacters > FOLLOWED_CHARACTERS && this.#received.length > 1) {
      this.#receivedCharacters -= this.#received.shift()!.size;
      this.#receivedFrom++;
    }
    return true;
  }

  /** Read the events that are written by now. Rejects with LogUnavailable. */
  look(): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => void (this.#looking = undefined)));
  }

  /**
   * Resolves when this many events are known, or the end is. A client that was connected elsewhere may have events that are not written
   * yet. The wait for events that are never written is short. Rejects with LogUnavailable.
   */
  async reach(count: number): Promise<void> {
    const isReceivedWhole = this.#receivedFrom === 0 && this.#received.length > 0;
    if (!this.#hasLooked && !isReceivedWhole) await this.look();
    for (let patience = FOLLOWED_PATIENCE; this.position < count && !this.#hasEnd && patience > 0; patience--) {
      await this.#given.clock.sleep(TRANSCRIPT_FLUSH_MS);
      await this.look();
    }
  }

  /**
   * Some events from a position on, and the position behind them. Waits a moment for events that were told later than others and are not
   * written yet; those that are never written are left out. Rejects with LogUnavailable.
   */
  async page(position: number): Promise<{ readonly events: readonly TurnEvent[]; readonly next: number }> {
    for (let patience = FOLLOWED_PATIENCE; position < this.position; patience--) {
      if (position >= this.#receivedFrom && position < this.#receivedFrom + this.#received.length && !this.#hasEnd) {
        const events = this.#received.slice(position - this.#receivedFrom).map(({ event }) => event);
        return { events, next: position + events.length };
      }
      const piece = this.#pieces.findLast(({ first }) => first <= position);
      if (piece && position < piece.next) {
        for await (const entry of this.#given.log.read(this.#stream, { from: piece.sequence, limit: 1 })) {
          return { events: eventsOf(entry).slice(position - piece.first), next: piece.next };
        }
        return { events: [], next: piece.next };
      }
      if (patience === 0) return { events: [], next: this.#receivedFrom };
      if (patience < FOLLOWED_PATIENCE) await this.#given.clock.sleep(TRANSCRIPT_FLUSH_MS);
      await this.look();
    }
    return { events: [], next: this.position };
  }

  /** How many events are written. */
  get #written(): number {
    return this.#pieces.at(-1)?.next ?? 0;
  }

  async #look(): Promise<void> {
    const found: Piece[] = [];
    let next = this.#written;
    let hasEnd = false;
    for await (const entry of this.#given.log.read(this.#stream, { from: (this.#pieces.at(-1)?.sequence ?? 0) + 1 })) {
      const events = eventsOf(entry);
      found.push({ first: next, next: next + events.length, sequence: entry.sequence });
      next += events.length;
      hasEnd ||= events.some(isEnd);
    }
    // All at once, so that an event is sent only when the events after it are known.
    this.#pieces.push(...found);
    this.#hasEnd ||= hasEnd;
    this.#hasLooked = true;
    this.#given.looked();
  }
}
