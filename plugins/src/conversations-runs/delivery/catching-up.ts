import { isStoreAway, type ports } from "@portico/core";
import { REPLAY_PAUSE_MS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { Audience, Listener, Watched } from "./audience.ts";
import { countAfter, isMissing } from "./missing.ts";
import type { Seat, Wire } from "./seat.ts";

export interface CatchingUpGiven {
  readonly clock: ports.Clock;
  readonly wire: () => Wire;
  /** The written events of a turn of this listener. */
  readonly written: (listener: Listener, clientRequestId: string) => AsyncIterable<TurnEvent>;
  /** The place of a client that has received everything that was sent to its connection. */
  readonly placeOf: (audience: Audience, seat: Seat) => string;
  /** A connection does not wait for more events of this turn. */
  readonly release: (audience: Audience, watched: Watched) => void;
}

/** Sends connections the events that they are behind on: in order, and at most as many at once as they take. */
export class CatchingUp {
  readonly #given: CatchingUpGiven;
  /** The turns that are being sent. */
  readonly #running = new WeakMap<Seat, Map<string, Promise<void>>>();

  constructor(given: CatchingUpGiven) {
    this.#given = given;
  }

  /** Ended turns go first, and in order: turns of one session send their events one after another. */
  async all(audience: Audience, seat: Seat): Promise<void> {
    const missed = [...seat.behind].map(([clientRequestId]) => clientRequestId);
    const isLive = (clientRequestId: string) =>
      audience.watched.some((each) => each.clientRequestId === clientRequestId && !each.isEnded);
    for (const clientRequestId of missed.filter((each) => !isLive(each))) await this.one(audience, seat, clientRequestId);
    for (const clientRequestId of missed) {
      if (seat.behindOn(clientRequestId) !== undefined) void this.one(audience, seat, clientRequestId);
    }
  }

  /**
   * Sends a connection the events of one turn that it is behind on, until it receives new events of the turn directly. A second call
   * meanwhile has no effect.
   */
  one(audience: Audience, seat: Seat, clientRequestId: string): Promise<void> {
    const running = this.#running.get(seat)?.get(clientRequestId);
    if (running) return running;
    const ofSeat = this.#running.get(seat) ?? new Map<string, Promise<void>>();
    this.#running.set(seat, ofSeat);
    const run = this.#run(audience, seat, clientRequestId, () => ofSeat.delete(clientRequestId));
    // It may have ended already.
    if (seat.behindOn(clientRequestId) !== undefined) ofSeat.set(clientRequestId, run);
    return run;
  }

  async #run(audience: Audience, seat: Seat, clientRequestId: string, ended: () => void): Promise<void> {
    try {
      while (seat.behindOn(clientRequestId) !== undefined && (await this.#go(audience, seat, clientRequestId)));
    } finally {
      // At once when the connection is level: from then on it can fall behind again.
      ended();
    }
  }

  /** False when the connection ends first. */
  async #go(audience: Audience, seat: Seat, clientRequestId: string): Promise<boolean> {
    const watchedNow = () => audience.watched.find((each) => each.clientRequestId === clientRequestId);
    const watched = watchedNow();
    try {
      const isThere = watched
        ? await this.#sendWatched(audience, seat, watched)
        : await this.#sendAll(audience, seat, clientRequestId, this.#given.written(audience.listener, clientRequestId));
      if (!isThere) return false;
      if (watched) this.#given.release(audience, watched);
      // A turn that waited may have begun meanwhile: the connection then continues from its transcript.
      else if (!watchedNow()) seat.catchUp(clientRequestId);
      return true;
    } catch (error) {
      if (!isStoreAway(error)) {
        this.#given.wire().drop(seat.socketId);
        return false;
      }
      // The connection stays behind with this turn, so that it loses no event: the next attempt continues here.
      await this.#given.clock.sleep(REPLAY_PAUSE_MS);
      return audience.seats.includes(seat);
    }
  }

  /** Until the connection is level with the turn. False when the connection ends first. Rejects with LogUnavailable. */
  async #sendWatched(audience: Audience, seat: Seat, watched: Watched): Promise<boolean> {
    const { clientRequestId, transcript, elsewhere } = watched;
    await elsewhere?.transcript.reach(seat.behindOn(clientRequestId) ?? 0);
    // If the log was unavailable, a turn may have sent more events than are stored. Its end is the last available event.
    let position = Math.min(seat.behindOn(clientRequestId) ?? 0, Math.max(transcript.position - 1, 0));
    while (position < transcript.position) {
      const { events, next } = await transcript.page(position);
      if (!(await this.#sendAll(audience, seat, clientRequestId, events))) return false;
      position = next;
      if (!(await seat.drained(this.#given.wire()))) return false;
    }
    if (!audience.seats.includes(seat)) return false;
    // Immediately, because new events of the turn are sent directly from now on.
    seat.catchUp(clientRequestId);
    return true;
  }

  /** Those of one turn's events that the client misses. False when the connection ends first. */
  async #sendAll(
    audience: Audience,
    seat: Seat,
    clientRequestId: string,
    events: Iterable<TurnEvent> | AsyncIterable<TurnEvent>,
  ): Promise<boolean> {
    for await (const event of events) {
      if (!audience.seats.includes(seat)) return false;
      const count = seat.behindOn(clientRequestId);
      // A turn sends nothing after its end. A restart may have left two ends: the first one counts.
      if (count === undefined) return true;
      if (!isMissing(event, count)) continue;
      if (seat.isFull && !(await seat.drained(this.#given.wire()))) return false;
      const after = countAfter(event);
      if (after === undefined) seat.catchUp(clientRequestId);
      else seat.fallBehind(clientRequestId, after);
      seat.send(this.#given.wire(), event, JSON.stringify(event.data).length, this.#given.placeOf(audience, seat));
    }
    return audience.seats.includes(seat);
  }
}
