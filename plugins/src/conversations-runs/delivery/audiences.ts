import type { ports } from "@portico/core";
import { RETURN_MS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import {
  type Audience,
  type AudienceMessage,
  audienceOf,
  audienceTopic,
  firstPlace,
  isRemembered,
  keep,
  type Listener,
  type NamedTurn,
  placeOf,
  type Watched,
} from "./audience.ts";
import { CatchingUp } from "./catching-up.ts";
import { isEnd } from "./missing.ts";
import { readPlace } from "./place.ts";
import { Seat, SeatStart, type Wire } from "./seat.ts";
import { TurnsElsewhere, type TurnsElsewhereGiven } from "./turns-elsewhere.ts";

export interface AudiencesGiven extends Pick<TurnsElsewhereGiven, "clock" | "log" | "bus" | "recent" | "waiting"> {
  /** Names this process among all that clients may have come from: letters and digits. */
  readonly life: string;
  readonly wire: () => Wire;
  /** The written events of a turn of this listener. */
  readonly written: (listener: Listener, clientRequestId: string) => AsyncIterable<TurnEvent>;
}

/**
 * Sends the events of turns to the connections that may receive them: those of the same user and the same clientInstanceId. A client that
 * reconnects within two minutes gets the missed events, in order (open points 7). Each event carries the client's place, from which it
 * continues after a cut. A slow connection is not filled further: it continues from the transcript when it has taken the sent events.
 */
export class Audiences {
  readonly #audiences = new Map<string, Audience>();
  readonly #given: AudiencesGiven;
  readonly #catchingUp: CatchingUp;
  readonly #elsewhere: TurnsElsewhere;
  #begun = 0;

  constructor(given: AudiencesGiven) {
    this.#given = given;
    const release = (audience: Audience, watched: Watched) => this.#release(audience, watched);
    this.#catchingUp = new CatchingUp({ ...given, release, placeOf: (audience, seat) => this.#placeOf(audience, seat) });
    this.#elsewhere = new TurnsElsewhere({
      ...given,
      release,
      deliver: (...delivered) => this.#deliver(...delivered),
      say: (...said) => this.#say(...said),
      fallBehind: (...behind) => this.#fallBehind(...behind),
      catchUpAll: (audience, seat) => void this.#catchingUp.all(audience, seat),
    });
  }

  /**
   * The start of a client whose last event had this place, and whether it misses no event then. A client without a place may have left
   * another process: it gets the events of turns that ended elsewhere in the last two minutes, possibly a second time.
   */
  resume(listener: Listener, last: string | undefined, saysWhatItHas: boolean): ports.Resumption {
    const audience = this.#audiences.get(keyOf(listener));
    const place = last === undefined ? undefined : readPlace(last);
    if (!place) {
      const now = this.#now;
      const since = now === undefined || saysWhatItHas ? now : now - RETURN_MS;
      return { place: firstPlace(this.#counted, audience, now, since), isWhole: false };
    }
    return { place: last!, isWhole: place.life === this.#given.life && isRemembered(audience, place) };
  }

  /**
   * A connection is open, and begins at a place that `resume` returned. `received` is the client's own statement: the `seq` of the last
   * message by `clientRequestId`. It has priority over the place.
   */
  join(listener: Listener, socketId: string, received: ReadonlyMap<string, number>, place: string): void {
    const audience = this.#of(listener);
    audience.expiry?.cancel();
    audience.expiry = undefined;
    const start = new SeatStart(readPlace(place)!, received);
    const seat = new Seat(socketId, start);
    audience.seats = [...audience.seats, seat];
    for (const [clientRequestId, count] of start.named()) seat.fallBehind(clientRequestId, count);
    const { kept, watched } = audience;
    for (const turn of kept?.turns ?? []) {
      const count = start.countOfEnded(turn);
      if (count === undefined) continue;
      seat.fallBehind(turn.clientRequestId, count);
      // This connection may break, too, before it was sent all of it.
      kept?.keep(turn);
    }
    for (const turn of watched) {
      // Of a turn elsewhere, this process may not know the end yet.
      const count = turn.isEnded || turn.elsewhere ? start.countOfEnded(turn) : start.countOfOpen(turn);
      if (count !== undefined) seat.fallBehind(turn.clientRequestId, count);
    }
    const isHere = (id: string) =>
      kept?.find(id) !== undefined || watched.some((turn) => turn.clientRequestId === id && !turn.elsewhere);
    if ([...seat.behind].every(([id]) => isHere(id))) void this.#catchingUp.all(audience, seat);
    void this.#elsewhere.settle(audience, seat);
  }

  /** A connection has ended. */
  leave(listener: Listener, socketId: string): void {
    const audience = this.#audiences.get(keyOf(listener));
    const seat = audience?.seats.find((each) => each.socketId === socketId);
    if (!audience || !seat) return;
    audience.seats = audience.seats.filter((each) => each !== seat);
    if (audience.seats.length > 0) return;
    for (const watched of audience.watched) watched.left = seat.behindOn(watched.clientRequestId) ?? watched.transcript.position;
    this.#elsewhere.stop(audience);
    this.#expire(audience);
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
    began?: Pick<NamedTurn, "life" | "number">,
  ): Watched {
    const numbered = { clientRequestId, turnId, ...(began ?? { life: this.#given.life, number: this.count() }) };
    const watched: Watched = { ...numbered, transcript, isEnded: false, isOver: false, left: 0 };
    const audience = this.#of(listener);
    if (began) this.#elsewhere.takeBack(audience, watched);
    else audience.watched = [...audience.watched, watched];
    return watched;
  }

  /** A turn sent an event. */
  tell(listener: Listener, watched: Watched, event: TurnEvent, position: number, size: number): void {
    watched.isEnded ||= isEnd(event);
    const audience = this.#audiences.get(keyOf(listener));
    if (!audience) return;
    if (audience.topic !== undefined) {
      const { clientRequestId, turnId, life, number } = watched;
      const upTo = position > 0 ? 0 : this.#toldUpTo(audience);
      this.#publish(audience.topic, {
        kind: "told",
        turn: { clientRequestId, turnId, life, number },
        event,
        position,
        size,
        upTo,
      });
    }
    this.#deliver(audience, watched, event, position, size);
  }

  /** Something that is only worth knowing now: to all connections of the listener, or to one. */
  announce(listener: Listener, event: TurnEvent, socketId?: string): void {
    const audience = this.#audiences.get(keyOf(listener));
    if (audience) this.#say(audience, event, socketId);
    const isHere = audience?.seats.some((seat) => seat.socketId === socketId);
    const topic = audience ? audience.topic : topicOf(listener);
    if (topic !== undefined && !isHere) this.#publish(topic, { kind: "announced", event, socketId });
  }

  /** A turn sends no more events here. */
  finish(listener: Listener, watched: Watched): void {
    watched.isOver = true;
    const audience = this.#audiences.get(keyOf(listener));
    if (!audience) return;
    if (watched.isEnded) this.#release(audience, watched);
    else this.#elsewhere.handOver(audience, watched);
    if (audience.seats.length === 0 && !audience.expiry) this.#expire(audience);
  }

  /** Another process wrote the end of a turn whose process died. */
  closed(listener: Listener, turn: NamedTurn): void {
    const audience = this.#audiences.get(keyOf(listener));
    if (audience) this.#elsewhere.closed(audience, turn);
    const topic = topicOf(listener);
    if (topic !== undefined) this.#publish(topic, { kind: "closed", turn });
  }

  close(): void {
    for (const audience of this.#audiences.values()) {
      audience.expiry?.cancel();
      audience.kept?.clear();
      audience.seats = [];
      this.#elsewhere.stop(audience);
    }
    this.#audiences.clear();
  }

  get #counted() {
    return { life: this.#given.life, begun: this.#begun };
  }

  /** Undefined in an instance with one process, because its places need no time. */
  get #now(): number | undefined {
    return this.#given.recent && this.#given.clock.now();
  }

  #placeOf(audience: Audience, seat: Seat): string {
    return placeOf(this.#counted, audience, seat, this.#now);
  }

  #publish(topic: string, message: AudienceMessage): void {
    this.#given.bus.publish(topic, message, { toOthers: true });
  }

  #say({ seats }: Audience, event: TurnEvent, to: string | undefined): void {
    for (const { socketId } of seats) if (to === undefined || to === socketId) this.#given.wire().send(socketId, event);
  }

  /** The number up to which all turns of an audience that began here have sent their first event. */
  #toldUpTo({ watched }: Audience): number {
    const silent = watched.filter(({ elsewhere, transcript }) => !elsewhere && transcript.position === 0);
    return Math.min(this.#begun, ...silent.map(({ number }) => number - 1));
  }

  #deliver(audience: Audience, { clientRequestId }: Watched, event: TurnEvent, position: number, size: number): void {
    let place: string | undefined;
    for (const seat of audience.seats) {
      if (seat.behindOn(clientRequestId) !== undefined) continue;
      if (seat.isFull) {
        this.#fallBehind(audience, seat, clientRequestId, position);
      } else if (seat.isLevel && !seat.start) {
        seat.send(this.#given.wire(), event, size, (place ??= this.#placeOf(audience, seat)));
      } else {
        seat.send(this.#given.wire(), event, size, this.#placeOf(audience, seat));
      }
    }
  }

  #fallBehind(audience: Audience, seat: Seat, clientRequestId: string, count: number): void {
    seat.fallBehind(clientRequestId, count);
    void this.#catchingUp.one(audience, seat, clientRequestId);
  }

  /** Let go of a turn of which no connection waits for more: its client may still come back for its end. */
  #release(audience: Audience, watched: Watched): void {
    if (!watched.isOver || audience.seats.length === 0 || !audience.watched.includes(watched)) return;
    if (audience.seats.some((seat) => seat.behindOn(watched.clientRequestId) !== undefined)) return;
    audience.watched = audience.watched.filter((each) => each !== watched);
    keep(audience, watched, this.#given.clock);
  }

  /** No client is connected. After a while, ended turns are forgotten, and then an audience without turns. */
  #expire(audience: Audience): void {
    audience.expiry = this.#given.clock.after(RETURN_MS, () => {
      audience.expiry = undefined;
      for (const watched of audience.watched) if (watched.isOver) keep(audience, watched, this.#given.clock);
      audience.kept?.clear();
      audience.watched = audience.watched.filter(({ isOver }) => !isOver);
      audience.leftElsewhere = [];
      if (audience.watched.length === 0) this.#audiences.delete(audience.key);
    });
  }

  #of(listener: Listener): Audience {
    const key = keyOf(listener);
    const known = this.#audiences.get(key) ?? {
      ...{ key, listener, topic: topicOf(listener), seats: [], watched: [], others: new Map() },
      ...{ kept: undefined, leftElsewhere: [], following: undefined, expiry: undefined },
    };
    this.#audiences.set(key, known);
    return known;
  }
}

function topicOf(listener: Listener): string | undefined {
  const audience = audienceOf(listener);
  return audience === undefined ? undefined : audienceTopic(audience);
}

function keyOf({ userId, clientInstanceId }: Listener): string {
  return JSON.stringify([userId, clientInstanceId]);
}
