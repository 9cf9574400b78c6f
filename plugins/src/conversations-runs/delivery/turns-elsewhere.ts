import { isStoreAway, type ports } from "@portico/core";
import { FOLLOWED_SILENCE_MS, FOLLOWING_WAIT_MS, ENDED_TURNS_MS, REPLAY_PAUSE_MS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import {
  type Subscriber,
  type SubscriberMessage,
  hearUpTo,
  remember,
  type Listener,
  type NamedTurn,
  type Watched,
} from "./subscriber.ts";
import { FollowedTranscript } from "./followed-transcript.ts";
import { isEnd } from "./missing.ts";
import type { RecentTurn } from "./recent-turns.ts";
import type { Connection } from "./connection.ts";

export interface TurnsElsewhereGiven {
  readonly clock: ports.Clock;
  readonly log: ports.EventLog;
  readonly bus: ports.Bus;
  /** Names this process. */
  readonly processId: string;
  /**
   * The listener's turns, in whichever process, that execute now or ended after this time (milliseconds since 1970). Undefined in an instance
   * of one process.
   */
  readonly recent: undefined | ((listener: Listener, since: number) => Promise<readonly RecentTurn[]>);
  /** The listener's turns that wait for a person, and which no process executes. */
  readonly waiting: (listener: Listener) => Promise<readonly NamedTurn[]>;
  /** Send an event to the connections that are not behind on its turn. */
  readonly deliver: (subscriber: Subscriber, watched: Watched, event: TurnEvent, position: number, size: number) => void;
  /** Send something to all connections, or to one. */
  readonly say: (subscriber: Subscriber, event: TurnEvent, socketId: string | undefined) => void;
  /** A connection is behind on a turn, with this count of its events. */
  readonly fallBehind: (subscriber: Subscriber, connection: Connection, clientRequestId: string, count: number) => void;
  readonly catchUpAll: (subscriber: Subscriber, connection: Connection) => void;
  readonly release: (subscriber: Subscriber, watched: Watched) => void;
}

/**
 * Turns that execute in another process than that of their listeners' connections. While a connection is open, their events arrive over the
 * bus. Events that the bus lost are in stores. They are looked up when a connection opens, when messages may have been lost, and after a
 * silence.
 */
export class TurnsElsewhere {
  readonly #given: TurnsElsewhereGiven;

  constructor(given: TurnsElsewhereGiven) {
    this.#given = given;
  }

  /** Finds the missed events of a new connection, and receives new events from now on. */
  async settle(subscriber: Subscriber, connection: Connection): Promise<void> {
    const isThere = () => subscriber.connections.includes(connection);
    const { recent: recentOf, waiting: waitingOf, clock } = this.#given;
    if (!recentOf) {
      const waiting = await this.#found(() => waitingOf(subscriber.listener), isThere);
      if (!waiting) return;
      for (const turn of waiting) if (!isWatched(subscriber, turn)) this.#watch(subscriber, turn, true);
    } else {
      subscriber.following ??= this.#follow(subscriber);
      await subscriber.following?.isUp;
      const recent = await this.#found(() => recentOf(subscriber.listener, clock.now() - ENDED_TURNS_MS), isThere);
      if (!recent) return;
      this.#learn(subscriber, recent, [connection]);
      for (const [processId, number] of connection.start!.resumePoint.begun) this.#hearUpTo(subscriber, processId, number);
      this.#look(subscriber, 0);
    }
    subscriber.leftElsewhere = [];
    connection.start = undefined;
    this.#given.catchUpAll(subscriber, connection);
  }

  /** No connection is left. Turns that continue elsewhere are looked up when a connection opens. */
  stop(subscriber: Subscriber): void {
    subscriber.following?.subscription.close();
    subscriber.following?.poll?.cancel();
    subscriber.following = undefined;
    const elsewhere = subscriber.watched.filter((turn) => turn.elsewhere);
    subscriber.watched = subscriber.watched.filter((turn) => !turn.elsewhere);
    subscriber.leftElsewhere = elsewhere.flatMap(({ clientRequestId, processId, number, isEnded, left, transcript }) =>
      isEnded && left >= transcript.position ? [] : [{ clientRequestId, processId, number, count: left }],
    );
  }

  /** The end of a turn was written in place of its process. */
  closed(subscriber: Subscriber, turn: NamedTurn): void {
    if (subscriber.connections.length > 0) this.#hear(subscriber, { kind: "closed", turn });
  }

  /** A turn no longer executes here, and its end is not sent from here, because another process writes it. */
  handOver(subscriber: Subscriber, lost: Watched): void {
    subscriber.watched = subscriber.watched.filter((each) => each !== lost);
    const { clientRequestId, processId, number, left, transcript } = lost;
    if (subscriber.connections.length === 0) {
      subscriber.leftElsewhere = [...subscriber.leftElsewhere, { clientRequestId, processId, number, count: left }];
      return;
    }
    const { elsewhere } = this.#watch(subscriber, lost, true);
    elsewhere!.level = transcript.position;
  }

  /** A turn that waited goes on here. Connections get the events that they miss from its own transcript. */
  takeBack(subscriber: Subscriber, watched: Watched): void {
    const { clientRequestId, transcript } = watched;
    const before = subscriber.watched.find((each) => each.clientRequestId === clientRequestId);
    const left = subscriber.leftElsewhere.find((each) => each.clientRequestId === clientRequestId);
    watched.left = left?.count ?? before?.left ?? 0;
    subscriber.leftElsewhere = subscriber.leftElsewhere.filter((each) => each !== left);
    subscriber.watched = [...subscriber.watched.filter((each) => each !== before), watched];
    const level = before?.elsewhere?.level ?? 0;
    if (level >= transcript.position) return;
    for (const connection of subscriber.connections)
      if (connection.behindOn(clientRequestId) === undefined)
        this.#given.fallBehind(subscriber, connection, clientRequestId, level);
  }

  #follow(subscriber: Subscriber): Subscriber["following"] {
    const { bus, clock } = this.#given;
    if (subscriber.topic === undefined) return undefined;
    const subscription = bus.subscribe(subscriber.topic, {
      received: (message) => this.#hear(subscriber, message as SubscriberMessage),
      missed: () => this.#learnAgain(subscriber),
    });
    const waiting = new AbortController();
    let isLate = false;
    const late = clock.sleep(FOLLOWING_WAIT_MS, waiting.signal).then(
      () => void (isLate = true),
      () => {},
    );
    const active = subscription.active.then((isActive) => {
      waiting.abort();
      if (isLate && isActive) void this.#learnAgain(subscriber);
    });
    return { subscription, isUp: Promise.race([active, late]), poll: undefined };
  }

  /** Messages of other processes may have been lost. */
  async #learnAgain(subscriber: Subscriber): Promise<void> {
    const { recent: recentOf, clock } = this.#given;
    const ask = async () => (await recentOf?.(subscriber.listener, clock.now() - ENDED_TURNS_MS)) ?? [];
    const recent = await this.#found(ask, () => subscriber.connections.length > 0);
    if (!recent) return;
    this.#learn(subscriber, recent, subscriber.connections);
    this.#look(subscriber, 0);
    for (const connection of subscriber.connections) if (!connection.start) this.#given.catchUpAll(subscriber, connection);
  }

  /** Waits for stores; undefined if the answer is no longer needed. */
  async #found<T>(ask: () => Promise<T>, isNeeded: () => boolean): Promise<T | undefined> {
    while (isNeeded()) {
      try {
        const found = await ask();
        return isNeeded() ? found : undefined;
      } catch (error) {
        if (!isStoreAway(error)) throw error;
        await this.#given.clock.sleep(REPLAY_PAUSE_MS);
      }
    }
    return undefined;
  }

  /** Turns that stores know: connections that were not sent them are behind. */
  #learn(subscriber: Subscriber, recent: readonly RecentTurn[], connections: readonly Connection[]): void {
    // A turn that began here and waited may go on elsewhere.
    const elsewhere = recent.filter(({ processId, endedAt }) => processId !== this.#given.processId || endedAt === undefined);
    const isNew = ({ processId, number }: RecentTurn) => number > (subscriber.others.get(processId)?.begun ?? 0);
    for (const turn of elsewhere) {
      const { clientRequestId, endedAt } = turn;
      if (isWatched(subscriber, turn) || subscriber.ended?.find(clientRequestId)) continue;
      if (endedAt === undefined) {
        this.#watch(subscriber, turn, true);
        continue;
      }
      for (const connection of connections) {
        const missed = isNew(turn) ? 0 : undefined;
        const count = connection.start ? connection.start.countOfEnded(turn, endedAt) : missed;
        if (count !== undefined && connection.behindOn(clientRequestId) === undefined)
          connection.fallBehind(clientRequestId, count);
      }
      remember(subscriber, turn, this.#given.clock);
    }
    for (const { processId, number } of elsewhere) this.#hearUpTo(subscriber, processId, number);
  }

  #hearUpTo(subscriber: Subscriber, processId: string, number: number): void {
    if (processId !== this.#given.processId) hearUpTo(subscriber, processId, number, this.#given.clock.now());
  }

  #hear(subscriber: Subscriber, message: SubscriberMessage): void {
    if (message.kind === "announced") return this.#given.say(subscriber, message.event, message.socketId);
    const { turn } = message;
    // A process that lost the turn may not know it yet, and tell more.
    if (subscriber.ended?.find(turn.clientRequestId)) return;
    const known = subscriber.watched.find((each) => each.clientRequestId === turn.clientRequestId);
    const isFirst = message.kind === "event" && message.position === 0;
    const watched = known ?? this.#watch(subscriber, turn, !isFirst);
    const { elsewhere } = watched;
    if (!elsewhere) return;
    elsewhere.heardAt = this.#given.clock.now();
    if (message.kind === "closed") return void elsewhere.transcript.look().catch(() => {});
    const { event, position, size, upTo } = message;
    if (upTo > 0) this.#hearUpTo(subscriber, turn.processId, upTo);
    if (!elsewhere.transcript.hear(event, position, size)) return;
    const isNext = position === elsewhere.level;
    if (isNext) elsewhere.level++;
    else this.#advance(subscriber, watched);
    watched.isEnded ||= isEnd(event);
    if (isNext) this.#given.deliver(subscriber, watched, event, position, size);
    if (!watched.isEnded) return;
    watched.isOver = true;
    this.#given.release(subscriber, watched);
  }

  /** `hasSent`: it may have sent events already. */
  #watch(subscriber: Subscriber, turn: NamedTurn, hasSent: boolean): Watched {
    const { clientRequestId, turnId, processId, number } = turn;
    const { log, clock } = this.#given;
    const transcript = new FollowedTranscript(turnId, { log, clock, looked: () => this.#advance(subscriber, watched) });
    const watched: Watched = {
      ...{ transcript, clientRequestId, turnId, processId, number, isEnded: false, isOver: false, left: 0 },
      elsewhere: { transcript, heardAt: clock.now(), level: 0 },
    };
    subscriber.watched = [...subscriber.watched, watched];
    for (const connection of subscriber.connections) {
      const count = connection.start?.countOfOpen(turn) ?? 0;
      if (count > 0 && connection.behindOn(clientRequestId) === undefined) connection.fallBehind(clientRequestId, count);
    }
    if (hasSent) void transcript.look().catch(() => {});
    this.#poll(subscriber);
    return watched;
  }

  /** There may be more of a turn than connections have that are not behind on it. */
  #advance(subscriber: Subscriber, watched: Watched): void {
    const { elsewhere, clientRequestId } = watched;
    if (!elsewhere) return;
    const { transcript, level } = elsewhere;
    if (transcript.position > level || (transcript.hasEnd && !watched.isEnded)) {
      elsewhere.level = transcript.position;
      for (const connection of subscriber.connections) {
        if (connection.behindOn(clientRequestId) === undefined)
          this.#given.fallBehind(subscriber, connection, clientRequestId, level);
      }
    }
    if (!transcript.hasEnd) return;
    watched.isEnded = watched.isOver = true;
    this.#given.release(subscriber, watched);
  }

  /** Looks up turns without a message for this time. */
  #look({ watched }: Subscriber, silenceMs: number): void {
    const now = this.#given.clock.now();
    for (const { elsewhere, isOver } of watched) {
      // If the log is unavailable, the next look finds it.
      if (elsewhere && !isOver && now - elsewhere.heardAt >= silenceMs) elsewhere.transcript.look().catch(() => {});
    }
  }

  /** The bus may be away, and the process of a turn dead. */
  #poll(subscriber: Subscriber): void {
    const { following } = subscriber;
    if (!following || following.poll) return;
    following.poll = this.#given.clock.after(FOLLOWED_SILENCE_MS, () => {
      following.poll = undefined;
      if (subscriber.following !== following || !subscriber.watched.some(({ elsewhere, isOver }) => elsewhere && !isOver)) return;
      this.#look(subscriber, FOLLOWED_SILENCE_MS);
      this.#poll(subscriber);
    });
  }
}

function isWatched({ watched }: Subscriber, { clientRequestId }: NamedTurn): boolean {
  return watched.some((each) => each.clientRequestId === clientRequestId);
}
