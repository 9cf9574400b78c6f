import { isStoreAway, type ports } from "@portico/core";
import { FOLLOWED_SILENCE_MS, FOLLOWING_WAIT_MS, KEPT_MS, REPLAY_PAUSE_MS } from "../limits.ts";
import type { TurnEvent } from "../turns/turn.ts";
import { type Audience, type AudienceMessage, hearUpTo, keep, type Listener, type NamedTurn, type Watched } from "./audience.ts";
import { FollowedTranscript } from "./followed-transcript.ts";
import { isEnd } from "./missing.ts";
import type { RecentTurn } from "./recent-turns.ts";
import type { Seat } from "./seat.ts";

export interface TurnsElsewhereGiven {
  readonly clock: ports.Clock;
  readonly log: ports.EventLog;
  readonly bus: ports.Bus;
  /** Names this process. */
  readonly life: string;
  /**
   * The listener's turns, in whichever process, that execute now or ended after this time (milliseconds since 1970). Undefined in an instance
   * of one process.
   */
  readonly recent: undefined | ((listener: Listener, since: number) => Promise<readonly RecentTurn[]>);
  /** The listener's turns that wait for a person, and which no process executes. */
  readonly waiting: (listener: Listener) => Promise<readonly NamedTurn[]>;
  /** Send an event to the connections that are not behind on its turn. */
  readonly deliver: (audience: Audience, watched: Watched, event: TurnEvent, position: number, size: number) => void;
  /** Send something to all connections, or to one. */
  readonly say: (audience: Audience, event: TurnEvent, socketId: string | undefined) => void;
  /** A connection is behind on a turn, with this count of its events. */
  readonly fallBehind: (audience: Audience, seat: Seat, clientRequestId: string, count: number) => void;
  readonly catchUpAll: (audience: Audience, seat: Seat) => void;
  readonly release: (audience: Audience, watched: Watched) => void;
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
  async settle(audience: Audience, seat: Seat): Promise<void> {
    const isThere = () => audience.seats.includes(seat);
    const { recent: recentOf, waiting: waitingOf, clock } = this.#given;
    if (!recentOf) {
      const waiting = await this.#found(() => waitingOf(audience.listener), isThere);
      if (!waiting) return;
      for (const turn of waiting) if (!isWatched(audience, turn)) this.#watch(audience, turn, true);
    } else {
      audience.following ??= this.#follow(audience);
      await audience.following?.isUp;
      const recent = await this.#found(() => recentOf(audience.listener, clock.now() - KEPT_MS), isThere);
      if (!recent) return;
      this.#learn(audience, recent, [seat]);
      for (const [life, number] of seat.start!.place.begun) this.#hearUpTo(audience, life, number);
      this.#look(audience, 0);
    }
    audience.leftElsewhere = [];
    seat.start = undefined;
    this.#given.catchUpAll(audience, seat);
  }

  /** No connection is left. Turns that continue elsewhere are looked up when a connection opens. */
  stop(audience: Audience): void {
    audience.following?.subscription.close();
    audience.following?.poll?.cancel();
    audience.following = undefined;
    const elsewhere = audience.watched.filter((turn) => turn.elsewhere);
    audience.watched = audience.watched.filter((turn) => !turn.elsewhere);
    audience.leftElsewhere = elsewhere.flatMap(({ clientRequestId, life, number, isEnded, left, transcript }) =>
      isEnded && left >= transcript.position ? [] : [{ clientRequestId, life, number, count: left }],
    );
  }

  /** The end of a turn was written in place of its process. */
  closed(audience: Audience, turn: NamedTurn): void {
    if (audience.seats.length > 0) this.#hear(audience, { kind: "closed", turn });
  }

  /** A turn no longer executes here, and its end is not sent from here, because another process writes it. */
  handOver(audience: Audience, lost: Watched): void {
    audience.watched = audience.watched.filter((each) => each !== lost);
    const { clientRequestId, life, number, left, transcript } = lost;
    if (audience.seats.length === 0) {
      audience.leftElsewhere = [...audience.leftElsewhere, { clientRequestId, life, number, count: left }];
      return;
    }
    const { elsewhere } = this.#watch(audience, lost, true);
    elsewhere!.level = transcript.position;
  }

  /** A turn that waited goes on here. Connections get the events that they miss from its own transcript. */
  takeBack(audience: Audience, watched: Watched): void {
    const { clientRequestId, transcript } = watched;
    const before = audience.watched.find((each) => each.clientRequestId === clientRequestId);
    const left = audience.leftElsewhere.find((each) => each.clientRequestId === clientRequestId);
    watched.left = left?.count ?? before?.left ?? 0;
    audience.leftElsewhere = audience.leftElsewhere.filter((each) => each !== left);
    audience.watched = [...audience.watched.filter((each) => each !== before), watched];
    const level = before?.elsewhere?.level ?? 0;
    if (level >= transcript.position) return;
    for (const seat of audience.seats)
      if (seat.behindOn(clientRequestId) === undefined) this.#given.fallBehind(audience, seat, clientRequestId, level);
  }

  #follow(audience: Audience): Audience["following"] {
    const { bus, clock } = this.#given;
    if (audience.topic === undefined) return undefined;
    const subscription = bus.subscribe(audience.topic, {
      told: (message) => this.#hear(audience, message as AudienceMessage),
      missed: () => this.#learnAgain(audience),
    });
    const waiting = new AbortController();
    let isLate = false;
    const late = clock.sleep(FOLLOWING_WAIT_MS, waiting.signal).then(
      () => void (isLate = true),
      () => {},
    );
    const active = subscription.active.then((isActive) => {
      waiting.abort();
      if (isLate && isActive) void this.#learnAgain(audience);
    });
    return { subscription, isUp: Promise.race([active, late]), poll: undefined };
  }

  /** Messages of other processes may have been lost. */
  async #learnAgain(audience: Audience): Promise<void> {
    const { recent: recentOf, clock } = this.#given;
    const ask = async () => (await recentOf?.(audience.listener, clock.now() - KEPT_MS)) ?? [];
    const recent = await this.#found(ask, () => audience.seats.length > 0);
    if (!recent) return;
    this.#learn(audience, recent, audience.seats);
    this.#look(audience, 0);
    for (const seat of audience.seats) if (!seat.start) this.#given.catchUpAll(audience, seat);
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
  #learn(audience: Audience, recent: readonly RecentTurn[], seats: readonly Seat[]): void {
    // A turn that began here and waited may go on elsewhere.
    const elsewhere = recent.filter(({ life, endedAt }) => life !== this.#given.life || endedAt === undefined);
    const isNew = ({ life, number }: RecentTurn) => number > (audience.others.get(life)?.begun ?? 0);
    for (const turn of elsewhere) {
      const { clientRequestId, endedAt } = turn;
      if (isWatched(audience, turn) || audience.kept?.find(clientRequestId)) continue;
      if (endedAt === undefined) {
        this.#watch(audience, turn, true);
        continue;
      }
      for (const seat of seats) {
        const missed = isNew(turn) ? 0 : undefined;
        const count = seat.start ? seat.start.countOfEnded(turn, endedAt) : missed;
        if (count !== undefined && seat.behindOn(clientRequestId) === undefined) seat.fallBehind(clientRequestId, count);
      }
      keep(audience, turn, this.#given.clock);
    }
    for (const { life, number } of elsewhere) this.#hearUpTo(audience, life, number);
  }

  #hearUpTo(audience: Audience, life: string, number: number): void {
    if (life !== this.#given.life) hearUpTo(audience, life, number, this.#given.clock.now());
  }

  #hear(audience: Audience, message: AudienceMessage): void {
    if (message.kind === "announced") return this.#given.say(audience, message.event, message.socketId);
    const { turn } = message;
    // A process that lost the turn may not know it yet, and tell more.
    if (audience.kept?.find(turn.clientRequestId)) return;
    const known = audience.watched.find((each) => each.clientRequestId === turn.clientRequestId);
    const isFirst = message.kind === "told" && message.position === 0;
    const watched = known ?? this.#watch(audience, turn, !isFirst);
    const { elsewhere } = watched;
    if (!elsewhere) return;
    elsewhere.heardAt = this.#given.clock.now();
    if (message.kind === "closed") return void elsewhere.transcript.look().catch(() => {});
    const { event, position, size, upTo } = message;
    if (upTo > 0) this.#hearUpTo(audience, turn.life, upTo);
    if (!elsewhere.transcript.hear(event, position, size)) return;
    const isNext = position === elsewhere.level;
    if (isNext) elsewhere.level++;
    else this.#advance(audience, watched);
    watched.isEnded ||= isEnd(event);
    if (isNext) this.#given.deliver(audience, watched, event, position, size);
    if (!watched.isEnded) return;
    watched.isOver = true;
    this.#given.release(audience, watched);
  }

  /** `hasTold`: it may have sent events already. */
  #watch(audience: Audience, turn: NamedTurn, hasTold: boolean): Watched {
    const { clientRequestId, turnId, life, number } = turn;
    const { log, clock } = this.#given;
    const transcript = new FollowedTranscript(turnId, { log, clock, looked: () => this.#advance(audience, watched) });
    const watched: Watched = {
      ...{ transcript, clientRequestId, turnId, life, number, isEnded: false, isOver: false, left: 0 },
      elsewhere: { transcript, heardAt: clock.now(), level: 0 },
    };
    audience.watched = [...audience.watched, watched];
    for (const seat of audience.seats) {
      const count = seat.start?.countOfOpen(turn) ?? 0;
      if (count > 0 && seat.behindOn(clientRequestId) === undefined) seat.fallBehind(clientRequestId, count);
    }
    if (hasTold) void transcript.look().catch(() => {});
    this.#poll(audience);
    return watched;
  }

  /** There may be more of a turn than connections have that are not behind on it. */
  #advance(audience: Audience, watched: Watched): void {
    const { elsewhere, clientRequestId } = watched;
    if (!elsewhere) return;
    const { transcript, level } = elsewhere;
    if (transcript.position > level || (transcript.hasEnd && !watched.isEnded)) {
      elsewhere.level = transcript.position;
      for (const seat of audience.seats) {
        if (seat.behindOn(clientRequestId) === undefined) this.#given.fallBehind(audience, seat, clientRequestId, level);
      }
    }
    if (!transcript.hasEnd) return;
    watched.isEnded = watched.isOver = true;
    this.#given.release(audience, watched);
  }

  /** Looks up turns without a message for this time. */
  #look({ watched }: Audience, silenceMs: number): void {
    const now = this.#given.clock.now();
    for (const { elsewhere, isOver } of watched) {
      // If the log is unavailable, the next look finds it.
      if (elsewhere && !isOver && now - elsewhere.heardAt >= silenceMs) elsewhere.transcript.look().catch(() => {});
    }
  }

  /** The bus may be away, and the process of a turn dead. */
  #poll(audience: Audience): void {
    const { following } = audience;
    if (!following || following.poll) return;
    following.poll = this.#given.clock.after(FOLLOWED_SILENCE_MS, () => {
      following.poll = undefined;
      if (audience.following !== following || !audience.watched.some(({ elsewhere, isOver }) => elsewhere && !isOver)) return;
      this.#look(audience, FOLLOWED_SILENCE_MS);
      this.#poll(audience);
    });
  }
}

function isWatched({ watched }: Audience, { clientRequestId }: NamedTurn): boolean {
  return watched.some((each) => each.clientRequestId === clientRequestId);
}
