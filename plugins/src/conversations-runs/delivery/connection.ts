import type { Channel } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { OUTSTANDING_CHARACTERS, UNCONFIRMED_CHARACTERS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { NumberedTurn } from "./numbered-turn.ts";
import { countOf } from "./missing.ts";
import { numberedKey, type ResumePoint } from "./resume-point.ts";

/** The functions of the channel that a connection needs. */
export type Wire = Pick<Channel<typeof queryChannel>, "send" | "drained" | "drop">;

/** One connection, with the turns that it is behind on. It is sent at most as much as it takes. */
export class Connection {
  readonly socketId: string;
  /** The resume point that the client presented, until the missed events of other processes' turns were looked up. */
  start: ConnectionStart | undefined;
  /**
   * By `clientRequestId`, how many events the client has of turns that it is sent from their transcripts, and not as they happen. Most
   * connections are never behind: there are many, and they are kept small.
   */
  #behind: Map<string, number> | undefined;
  /** Characters that were sent, and of which it is not known whether they have left. */
  #outstanding = 0;
  #isAsked = false;

  constructor(socketId: string, start: ConnectionStart) {
    this.socketId = socketId;
    this.start = start;
  }

  /** Whether all events are here. */
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

  send(wire: Wire, event: TurnEvent, size: number, resumePoint: string): void {
    wire.send(this.socketId, event, resumePoint);
    this.#outstanding += size;
    if (this.#outstanding <= UNCONFIRMED_CHARACTERS || this.#isAsked) return;
    this.#isAsked = true;
    void this.drained(wire).then(() => (this.#isAsked = false));
  }

  /** Waits until the sent data have left; false if the connection ends first. */
  async drained(wire: Wire): Promise<boolean> {
    const isThere = await wire.drained(this.socketId);
    this.#outstanding = 0;
    return isThere;
  }
}

/** The events that a newly connected client has, by its resume point and by its own statement. The statement has priority. */
export class ConnectionStart {
  readonly resumePoint: ResumePoint;
  readonly #received: ReadonlyMap<string, number>;

  /** `received`: the `seq` of the last message by `clientRequestId`. */
  constructor(resumePoint: ResumePoint, received: ReadonlyMap<string, number>) {
    this.resumePoint = resumePoint;
    this.#received = received;
  }

  /** Turns that the client names, with how many events it has of each. */
  *named(): Iterable<readonly [clientRequestId: string, count: number]> {
    for (const [clientRequestId, seq] of this.#received) yield [clientRequestId, countOf(seq)];
    for (const [clientRequestId, count] of this.resumePoint.open)
      if (!this.#received.has(clientRequestId)) yield [clientRequestId, count];
  }

  /** How many events the client has of a turn that has not ended. */
  countOfOpen({ clientRequestId, processId, number }: NumberedTurn): number {
    const seq = this.#received.get(clientRequestId);
    if (seq !== undefined) return countOf(seq);
    return this.resumePoint.open.get(clientRequestId) ?? this.resumePoint.numbered.get(numberedKey(processId, number)) ?? 0;
  }

  /**
   * The same for a turn that has ended; undefined if the client has all of its events. `endedAt` in milliseconds since 1970, if it is
   * known.
   */
  countOfEnded(turn: NumberedTurn, endedAt?: number): number | undefined {
    const { begun, open, numbered, since } = this.resumePoint;
    const { clientRequestId, processId, number } = turn;
    const isListed = open.has(clientRequestId) || numbered.has(numberedKey(processId, number));
    if (isListed || this.#received.has(clientRequestId)) return this.countOfOpen(turn);
    const upTo = begun.get(processId);
    if (upTo !== undefined) return number <= upTo ? undefined : 0;
    return since !== undefined && endedAt !== undefined && endedAt <= since ? undefined : 0;
  }
}
