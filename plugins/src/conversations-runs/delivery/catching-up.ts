import { isStoreAway, type ports } from "@portico/core";
import { REPLAY_PAUSE_MS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { Subscriber, Listener, Watched } from "./subscriber.ts";
import { countAfter, isMissing } from "./missing.ts";
import type { Connection, Wire } from "./connection.ts";

export interface CatchingUpGiven {
  readonly clock: ports.Clock;
  readonly wire: () => Wire;
  /** The written events of a turn of this listener. */
  readonly written: (listener: Listener, clientRequestId: string) => AsyncIterable<TurnEvent>;
  /** The resume point of a client that has received everything that was sent to its connection. */
  readonly resumePointOf: (subscriber: Subscriber, connection: Connection) => string;
  /** A connection does not wait for more events of this turn. */
  readonly release: (subscriber: Subscriber, watched: Watched) => void;
}

/** Sends connections the events that they are behind on: in order, and at most as many at once as they take. */
export class CatchingUp {
  readonly #given: CatchingUpGiven;
  /** The turns that are being sent. */
  readonly #running = new WeakMap<Connection, Map<string, Promise<void>>>();

  constructor(given: CatchingUpGiven) {
    this.#given = given;
  }

  /** Ended turns go first, and in order: turns of one session send their events one after another. */
  async all(subscriber: Subscriber, connection: Connection): Promise<void> {
    const missed = [...connection.behind].map(([clientRequestId]) => clientRequestId);
    const isLive = (clientRequestId: string) =>
      subscriber.watched.some((each) => each.clientRequestId === clientRequestId && !each.isEnded);
    for (const clientRequestId of missed.filter((each) => !isLive(each))) await this.one(subscriber, connection, clientRequestId);
    for (const clientRequestId of missed) {
      if (connection.behindOn(clientRequestId) !== undefined) void this.one(subscriber, connection, clientRequestId);
    }
  }

  /**
   * Sends a connection the events of one turn that it is behind on, until it receives new events of the turn directly. A second call
   * meanwhile has no effect.
   */
  one(subscriber: Subscriber, connection: Connection, clientRequestId: string): Promise<void> {
    const running = this.#running.get(connection)?.get(clientRequestId);
    if (running) return running;
    const ofConnection = this.#running.get(connection) ?? new Map<string, Promise<void>>();
    this.#running.set(connection, ofConnection);
    const run = this.#run(subscriber, connection, clientRequestId, () => ofConnection.delete(clientRequestId));
    // It may have ended already.
    if (connection.behindOn(clientRequestId) !== undefined) ofConnection.set(clientRequestId, run);
    return run;
  }

  async #run(subscriber: Subscriber, connection: Connection, clientRequestId: string, ended: () => void): Promise<void> {
    try {
      while (connection.behindOn(clientRequestId) !== undefined && (await this.#go(subscriber, connection, clientRequestId)));
    } finally {
      // At once when the connection is level: from then on it can fall behind again.
      ended();
    }
  }

  /** False when the connection ends first. */
  async #go(subscriber: Subscriber, connection: Connection, clientRequestId: string): Promise<boolean> {
    const watchedNow = () => subscriber.watched.find((each) => each.clientRequestId === clientRequestId);
    const watched = watchedNow();
    try {
      const isThere = watched
        ? await this.#sendWatched(subscriber, connection, watched)
        : await this.#sendAll(subscriber, connection, clientRequestId, this.#given.written(subscriber.listener, clientRequestId));
      if (!isThere) return false;
      if (watched) this.#given.release(subscriber, watched);
      // A turn that waited may have begun meanwhile: the connection then continues from its transcript.
      else if (!watchedNow()) connection.catchUp(clientRequestId);
      return true;
    } catch (error) {
      if (!isStoreAway(error)) {
        this.#given.wire().drop(connection.socketId);
        return false;
      }
      // The connection stays behind with this turn, so that it loses no event: the next attempt continues here.
      await this.#given.clock.sleep(REPLAY_PAUSE_MS);
      return subscriber.connections.includes(connection);
    }
  }

  /** Until the connection is level with the turn. False when the connection ends first. Rejects with LogUnavailable. */
  async #sendWatched(subscriber: Subscriber, connection: Connection, watched: Watched): Promise<boolean> {
    const { clientRequestId, transcript, elsewhere } = watched;
    await elsewhere?.transcript.reach(connection.behindOn(clientRequestId) ?? 0);
    // If the log was unavailable, a turn may have sent more events than are stored. Its end is the last available event.
    let position = Math.min(connection.behindOn(clientRequestId) ?? 0, Math.max(transcript.position - 1, 0));
    while (position < transcript.position) {
      const { events, next } = await transcript.page(position);
      if (!(await this.#sendAll(subscriber, connection, clientRequestId, events))) return false;
      position = next;
      if (!(await connection.drained(this.#given.wire()))) return false;
    }
    if (!subscriber.connections.includes(connection)) return false;
    // Immediately, because new events of the turn are sent directly from now on.
    connection.catchUp(clientRequestId);
    return true;
  }

  /** Those of one turn's events that the client misses. False when the connection ends first. */
  async #sendAll(
    subscriber: Subscriber,
    connection: Connection,
    clientRequestId: string,
    events: Iterable<TurnEvent> | AsyncIterable<TurnEvent>,
  ): Promise<boolean> {
    for await (const event of events) {
      if (!subscriber.connections.includes(connection)) return false;
      const count = connection.behindOn(clientRequestId);
      // A turn sends nothing after its end. A restart may have left two ends: the first one counts.
      if (count === undefined) return true;
      if (!isMissing(event, count)) continue;
      if (connection.isFull && !(await connection.drained(this.#given.wire()))) return false;
      const after = countAfter(event);
      if (after === undefined) connection.catchUp(clientRequestId);
      else connection.fallBehind(clientRequestId, after);
      connection.send(
        this.#given.wire(),
        event,
        JSON.stringify(event.data).length,
        this.#given.resumePointOf(subscriber, connection),
      );
    }
    return subscriber.connections.includes(connection);
  }
}
