import type { Channel } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { OUTSTANDING_CHARACTERS, UNCONFIRMED_CHARACTERS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { SeatStart } from "./seat-start.ts";

/** What a seat needs of the channel. */
export type Wire = Pick<Channel<typeof queryChannel>, "send" | "drained" | "drop">;

/** One connection, with what it is behind on, and no more sent to it than it takes. */
export class Seat {
  readonly socketId: string;
  /** With what the client came, until it was looked for what it misses of other processes' turns. */
  start: SeatStart | undefined;
  /**
   * By `clientRequestId`, how many events the client has of turns that it is sent from their transcripts, and not as they happen. Most
   * connections are never behind: there are many, and they are kept small.
   */
  #behind: Map<string, number> | undefined;
  /** Characters that were sent, and of which it is not known whether they have left. */
  #outstanding = 0;
  #isAsked = false;

  constructor(socketId: string, start: SeatStart) {
    this.socketId = socketId;
    this.start = start;
  }

  /** Whether nothing is missing here. */
  get isLevel(): boolean {
    return this.#behind === undefined;
  }

  get isFull(): boolean {
    return this.#outstanding > OUTSTANDING_CHARACTERS;
  }

  /** How many events the client has of a turn on which it is behind; undefined for any other turn. */
  behindOn(clientRequestId: string): number | undefined {
    return this.#behind?.get(clientRequestId);
  }

  get behind(): Iterable<readonly [clientRequestId: string, count: number]> {
    return this.#behind ?? [];
  }

  fallBehind(clientRequestId: string, count: number): void {
    (this.#behind ??= new Map()).set(clientRequestId, count);
  }

  catchUp(clientRequestId: string): void {
    this.#behind?.delete(clientRequestId);
    if (this.#behind?.size === 0) this.#behind = undefined;
  }

  send(wire: Wire, event: TurnEvent, size: number, place: string): void {
    wire.send(this.socketId, event, place);
    this.#outstanding += size;
    if (this.#outstanding <= UNCONFIRMED_CHARACTERS || this.#isAsked) return;
    this.#isAsked = true;
    void this.drained(wire).then(() => (this.#isAsked = false));
  }

  /** Waits until what was sent has left; false when the connection ends first. */
  async drained(wire: Wire): Promise<boolean> {
    const isThere = await wire.drained(this.socketId);
    this.#outstanding = 0;
    return isThere;
  }
}
