import { countOf } from "./missing.ts";
import { type NumberedTurn } from "./numbered-turn.ts";
import { numberedKey, type Place } from "./place.ts";

/** The events that a newly connected client has, by its place and by its own statement. The statement has priority. */
export class SeatStart {
  readonly place: Place;
  readonly #received: ReadonlyMap<string, number>;

  /** `received`: the `seq` of the last message by `clientRequestId`. */
  constructor(place: Place, received: ReadonlyMap<string, number>) {
    this.place = place;
    this.#received = received;
  }

  /** Turns that the client names, with how many events it has of each. */
  *named(): Iterable<readonly [clientRequestId: string, count: number]> {
    for (const [clientRequestId, seq] of this.#received) yield [clientRequestId, countOf(seq)];
    for (const [clientRequestId, count] of this.place.open)
      if (!this.#received.has(clientRequestId)) yield [clientRequestId, count];
  }

  /** How many events the client has of a turn that has not ended. */
  countOfOpen({ clientRequestId, life, number }: NumberedTurn): number {
    const seq = this.#received.get(clientRequestId);
    if (seq !== undefined) return countOf(seq);
    return this.place.open.get(clientRequestId) ?? this.place.numbered.get(numberedKey(life, number)) ?? 0;
  }

  /**
   * The same for a turn that has ended; undefined if the client has all of its events. `endedAt` in milliseconds since 1970, if it is
   * known.
   */
  countOfEnded(turn: NumberedTurn, endedAt?: number): number | undefined {
    const { begun, open, numbered, since } = this.place;
    const { clientRequestId, life, number } = turn;
    const isListed = open.has(clientRequestId) || numbered.has(numberedKey(life, number));
    if (isListed || this.#received.has(clientRequestId)) return this.countOfOpen(turn);
    const upTo = begun.get(life);
    if (upTo !== undefined) return number <= upTo ? undefined : 0;
    return since !== undefined && endedAt !== undefined && endedAt <= since ? undefined : 0;
  }
}
