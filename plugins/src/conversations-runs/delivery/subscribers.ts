import type { ports } from "@portico/core";
import { RETURN_MS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import {
  type Subscriber,
  type SubscriberMessage,
  subscriberOf,
  subscriberTopic,
  firstResumePoint,
  isRemembered,
  remember,
  type Listener,
  type NamedTurn,
  resumePointOf,
  type Watched,
} from "./subscriber.ts";
import { CatchingUp } from "./catching-up.ts";
import { isEnd } from "./missing.ts";
import { readResumePoint } from "./resume-point.ts";
import { Connection, ConnectionStart, type Wire } from "./connection.ts";
import { TurnsElsewhere, type TurnsElsewhereGiven } from "./turns-elsewhere.ts";

export interface SubscribersGiven extends Pick<TurnsElsewhereGiven, "clock" | "log" | "bus" | "recent" | "waiting"> {
  /** Names this process among all that clients may have come from: letters and digits. */
  readonly processId: string;
  readonly wire: () => Wire;
  /** The written events of a turn of this listener. */
  readonly written: (listener: Listener, clientRequestId: string) => AsyncIterable<TurnEvent>;
}

/**
 * Sends the events of turns to the connections that may receive them: those of the same user and the same clientInstanceId. A client that
 * reconnects within two minutes gets the missed events, in order (open points 7). Each event carries the client's resume point, from which it
 * continues after a cut. A slow connection is not filled further: it continues from the transcript when it has taken the sent events.
 */
export class Subscribers {
  readonly #subscribers = new Map<string, Subscriber>();
  readonly #given: SubscribersGiven;
  readonly #catchingUp: CatchingUp;
  readonly #elsewhere: TurnsElsewhere;
  #begun = 0;

  constructor(given: SubscribersGiven) {
    this.#given = given;
    const release = (subscriber: Subscriber, watched: Watched) => this.#release(subscriber, watched);
    this.#catchingUp = new CatchingUp({
      ...given,
      release,
      resumePointOf: (subscriber, connection) => this.#resumePointOf(subscriber, connection),
    });
    this.#elsewhere = new TurnsElsewhere({
      ...given,
      release,
      deliver: (...delivered) => this.#deliver(...delivered),
      say: (...said) => this.#say(...said),
      fallBehind: (...behind) => this.#fallBehind(...behind),
      catchUpAll: (subscriber, connection) => void this.#catchingUp.all(subscriber, connection),
    });
  }

  /**
   * The start of a client whose last event had this resume point, and whether it misses no event then. A client without a resume point may have left
   * another process: it gets the events of turns that ended elsewhere in the last two minutes, possibly a second time.
   */
  resume(listener: Listener, last: string | undefined, saysWhatItHas: boolean): ports.Resumption {
    const subscriber = this.#subscribers.get(keyOf(listener));
    const resumePoint = last === undefined ? undefined : readResumePoint(last);
    if (!resumePoint) {
      const now = this.#now;
      const since = now === undefined || saysWhatItHas ? now : now - RETURN_MS;
      return { resumePoint: firstResumePoint(this.#counted, subscriber, now, since), isWhole: false };
    }
    return {
      resumePoint: last!,
      isWhole: resumePoint.processId === this.#given.processId && isRemembered(subscriber, resumePoint),
    };
  }

  /**
   * A connection is open, and begins at a resume point that `resume` returned. `received` is the client's own statement: the `seq` of the last
   * message by `clientRequestId`. It has priority over the resume point.
   */
  join(listener: Listener, socketId: string, received: ReadonlyMap<string, number>, resumePoint: string): void {
    const subscriber = this.#of(listener);
    subscriber.expiry?.cancel();
    subscriber.expiry = undefined;
    const start = new ConnectionStart(readResumePoint(resumePoint)!, received);
    const connection = new Connection(socketId, start);
    subscriber.connections = [...subscriber.connections, connection];
    for (const [clientRequestId, count] of start.named()) connection.fallBehind(clientRequestId, count);
    const { ended, watched } = subscriber;
    for (const turn of ended?.turns ?? []) {
      const count = start.countOfEnded(turn);
      if (count === undefined) continue;
      connection.fallBehind(turn.clientRequestId, count);
      // This connection may break, too, before it was sent all of it.
      ended?.remember(turn);
    }
    for (const turn of watched) {
      // Of a turn elsewhere, this process may not know the end yet.
      const count = turn.isEnded || turn.elsewhere ? start.countOfEnded(turn) : start.countOfOpen(turn);
      if (count !== undefined) connection.fallBehind(turn.clientRequestId, count);
    }
    const isHere = (id: string) =>
      ended?.find(id) !== undefined || watched.some((turn) => turn.clientRequestId === id && !turn.elsewhere);
    if ([...connection.behind].every(([id]) => isHere(id))) void this.#catchingUp.all(subscriber, connection);
    void this.#elsewhere.settle(subscriber, connection);
  }

  /** A connection has ended. */
  leave(listener: Listener, socketId: string): void {
    const subscriber = this.#subscribers.get(keyOf(listener));
    const connection = subscriber?.connections.find((each) => each.socketId === socketId);
    if (!subscriber || !connection) return;
    subscriber.connections = subscriber.connections.filter((each) => each !== connection);
    if (subscriber.connections.length > 0) return;
    for (const watched of subscriber.watched)
      watched.left = connection.behindOn(watched.clientRequestId) ?? watched.transcript.position;
    this.#elsewhere.stop(subscriber);
    this.#expire(subscriber);
  }

  /** The number of a turn that begins in this process. */
  count(): number {
    return ++this.#begun;
  }

  /**
   * A turn begins to send events, with or without a connected client, or goes on after a wait. `began` says in which process, and as which of
   * its turns, the latter began.
   */
  watch(
    listener: Listener,
    { clientRequestId, turnId }: Pick<NamedTurn, "clientRequestId" | "turnId">,
    transcript: Transcript,
    began?: Pick<NamedTurn, "processId" | "number">,
  ): Watched {
    const numbered = { clientRequestId, turnId, ...(began ?? { processId: this.#given.processId, number: this.count() }) };
    const watched: Watched = { ...numbered, transcript, isEnded: false, isOver: false, left: 0 };
    const subscriber = this.#of(listener);
    if (began) this.#elsewhere.takeBack(subscriber, watched);
    else subscriber.watched = [...subscriber.watched, watched];
    return watched;
  }

  /** A turn sent an event. */
  notify(listener: Listener, watched: Watched, event: TurnEvent, position: number, size: number): void {
    watched.isEnded ||= isEnd(event);
    const subscriber = this.#subscribers.get(keyOf(listener));
    if (!subscriber) return;
    if (subscriber.topic !== undefined) {
      const { clientRequestId, turnId, processId, number } = watched;
      const upTo = position > 0 ? 0 : this.#sentUpTo(subscriber);
      this.#publish(subscriber.topic, {
        kind: "event",
        turn: { clientRequestId, turnId, processId, number },
        event,
        position,
        size,
        upTo,
      });
    }
    this.#deliver(subscriber, watched, event, position, size);
  }

  /** Something that is only worth knowing now: to all connections of the listener, or to one. */
  announce(listener: Listener, event: TurnEvent, socketId?: string): void {
    const subscriber = this.#subscribers.get(keyOf(listener));
    if (subscriber) this.#say(subscriber, event, socketId);
    const isHere = subscriber?.connections.some((connection) => connection.socketId === socketId);
    const topic = subscriber ? subscriber.topic : topicOf(listener);
    if (topic !== undefined && !isHere) this.#publish(topic, { kind: "announced", event, socketId });
  }

  /** A turn sends no more events here. */
  finish(listener: Listener, watched: Watched): void {
    watched.isOver = true;
    const subscriber = this.#subscribers.get(keyOf(listener));
    if (!subscriber) return;
    if (watched.isEnded) this.#release(subscriber, watched);
    else this.#elsewhere.handOver(subscriber, watched);
    if (subscriber.connections.length === 0 && !subscriber.expiry) this.#expire(subscriber);
  }

  /** Another process wrote the end of a turn whose process died. */
  closed(listener: Listener, turn: NamedTurn): void {
    const subscriber = this.#subscribers.get(keyOf(listener));
    if (subscriber) this.#elsewhere.closed(subscriber, turn);
    const topic = topicOf(listener);
    if (topic !== undefined) this.#publish(topic, { kind: "closed", turn });
  }

  close(): void {
    for (const subscriber of this.#subscribers.values()) {
      subscriber.expiry?.cancel();
      subscriber.ended?.clear();
      subscriber.connections = [];
      this.#elsewhere.stop(subscriber);
    }
    this.#subscribers.clear();
  }

  get #counted() {
    return { processId: this.#given.processId, begun: this.#begun };
  }

  /** Undefined in an instance with one process, because its resume points need no time. */
  get #now(): number | undefined {
    return this.#given.recent && this.#given.clock.now();
  }

  #resumePointOf(subscriber: Subscriber, connection: Connection): string {
    return resumePointOf(this.#counted, subscriber, connection, this.#now);
  }

  #publish(topic: string, message: SubscriberMessage): void {
    this.#given.bus.publish(topic, message, { toOthers: true });
  }

  #say({ connections }: Subscriber, event: TurnEvent, to: string | undefined): void {
    for (const { socketId } of connections) if (to === undefined || to === socketId) this.#given.wire().send(socketId, event);
  }

  /** The number up to which all turns of a subscriber that began here have sent their first event. */
  #sentUpTo({ watched }: Subscriber): number {
    const silent = watched.filter(({ elsewhere, transcript }) => !elsewhere && transcript.position === 0);
    return Math.min(this.#begun, ...silent.map(({ number }) => number - 1));
  }

  #deliver(subscriber: Subscriber, { clientRequestId }: Watched, event: TurnEvent, position: number, size: number): void {
    let resumePoint: string | undefined;
    for (const connection of subscriber.connections) {
      if (connection.behindOn(clientRequestId) !== undefined) continue;
      if (connection.isFull) {
        this.#fallBehind(subscriber, connection, clientRequestId, position);
      } else if (connection.isLevel && !connection.start) {
        connection.send(this.#given.wire(), event, size, (resumePoint ??= this.#resumePointOf(subscriber, connection)));
      } else {
        connection.send(this.#given.wire(), event, size, this.#resumePointOf(subscriber, connection));
      }
    }
  }

  #fallBehind(subscriber: Subscriber, connection: Connection, clientRequestId: string, count: number): void {
    connection.fallBehind(clientRequestId, count);
    void this.#catchingUp.one(subscriber, connection, clientRequestId);
  }

  /** Let go of a turn of which no connection waits for more: its client may still come back for its end. */
  #release(subscriber: Subscriber, watched: Watched): void {
    if (!watched.isOver || subscriber.connections.length === 0 || !subscriber.watched.includes(watched)) return;
    if (subscriber.connections.some((connection) => connection.behindOn(watched.clientRequestId) !== undefined)) return;
    subscriber.watched = subscriber.watched.filter((each) => each !== watched);
    remember(subscriber, watched, this.#given.clock);
  }

  /** No client is connected. After a while, ended turns are forgotten, and then a subscriber without turns. */
  #expire(subscriber: Subscriber): void {
    subscriber.expiry = this.#given.clock.after(RETURN_MS, () => {
      subscriber.expiry = undefined;
      for (const watched of subscriber.watched) if (watched.isOver) remember(subscriber, watched, this.#given.clock);
      subscriber.ended?.clear();
      subscriber.watched = subscriber.watched.filter(({ isOver }) => !isOver);
      subscriber.leftElsewhere = [];
      if (subscriber.watched.length === 0) this.#subscribers.delete(subscriber.key);
    });
  }

  #of(listener: Listener): Subscriber {
    const key = keyOf(listener);
    const known = this.#subscribers.get(key) ?? {
      ...{ key, listener, topic: topicOf(listener), connections: [], watched: [], others: new Map() },
      ...{ ended: undefined, leftElsewhere: [], following: undefined, expiry: undefined },
    };
    this.#subscribers.set(key, known);
    return known;
  }
}

function topicOf(listener: Listener): string | undefined {
  const subscriber = subscriberOf(listener);
  return subscriber === undefined ? undefined : subscriberTopic(subscriber);
}

function keyOf({ userId, clientInstanceId }: Listener): string {
  return JSON.stringify([userId, clientInstanceId]);
}
