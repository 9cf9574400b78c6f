import { isStoreAway, type ports } from "@portico/core";
import { PLACE_TURNS, REPLAY_PAUSE_MS, RETURN_MS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import { KeptTurns } from "./kept-turns.ts";
import { countAfter, countOf, isEnd, isMissing } from "./missing.ts";
import { formatPlace, type OpenTurn, type Place, readPlace } from "./place.ts";
import { Seat, type Wire } from "./seat.ts";

/** One client program of one user, with however many connections. */
export interface Listener {
  readonly userId: string;
  readonly clientInstanceId: string;
}

/** One turn that an audience hears. */
export interface Watched {
  readonly transcript: Transcript;
  readonly clientRequestId: string;
  /** The turn's number among those that began in this process. */
  readonly number: number;
  /** Its end was told. */
  isEnded: boolean;
  /** It tells nothing more. */
  isOver: boolean;
  /** How many events were sent to the last connection that left. */
  left: number;
}

interface Audience {
  readonly key: string;
  readonly listener: Listener;
  /** Hardly ever more than one. */
  seats: readonly Seat[];
  watched: readonly Watched[];
  /** Present from the first turn on that ended here. */
  kept: KeptTurns | undefined;
  expiry: ports.Timer | undefined;
}

export interface AudiencesGiven {
  readonly clock: ports.Clock;
  /** Names this process among all that clients may have come from: letters and digits. */
  readonly life: string;
  readonly wire: () => Wire;
  /** What a turn of this listener told, as far as it is written. */
  readonly written: (listener: Listener, clientRequestId: string) => AsyncIterable<TurnEvent>;
}

/**
 * Brings what turns tell to the connections that may hear it: those of the same user and the same clientInstanceId. A client that comes back
 * within two minutes gets what it missed, in order (open points 7). Each event carries the client's place, from which it goes on when its
 * connection is cut. A connection that takes less than is told is not filled further: it goes on from the transcript when it has taken
 * what it was sent.
 */
export class Audiences {
  readonly #audiences = new Map<string, Audience>();
  readonly #given: AudiencesGiven;
  #begun = 0;

  constructor(given: AudiencesGiven) {
    this.#given = given;
  }

  /** Where a client begins whose last event had this place, and whether it misses nothing then. */
  resume(listener: Listener, last: string | undefined): ports.Resumption {
    const audience = this.#audiences.get(keyOf(listener));
    const place = last === undefined ? undefined : readPlace(last);
    if (!place) return { place: this.#firstPlace(audience), isWhole: false };
    return { place: last!, isWhole: place.life === this.#given.life && isRemembered(audience, place) };
  }

  /**
   * A connection stands, and begins at a place that `resume` answered. `received` is what the client says itself to have, as the `seq` of the
   * last message by `clientRequestId`: it goes before the place.
   */
  join(listener: Listener, socketId: string, received: ReadonlyMap<string, number>, place: string): void {
    const audience = this.#of(listener);
    audience.expiry?.cancel();
    audience.expiry = undefined;
    const seat = new Seat(socketId);
    audience.seats = [...audience.seats, seat];
    const { life, begun, open, numbered } = readPlace(place)!;
    const isOfThisLife = life === this.#given.life;
    const countAt = ({ clientRequestId, number }: { readonly clientRequestId: string; readonly number: number }) => {
      const seq = received.get(clientRequestId);
      if (seq !== undefined) return countOf(seq);
      const listed = open.get(clientRequestId) ?? (isOfThisLife ? numbered.get(number) : undefined);
      return listed ?? (isOfThisLife && number <= begun ? undefined : 0);
    };
    for (const [clientRequestId, seq] of received) seat.fallBehind(clientRequestId, countOf(seq));
    for (const [clientRequestId, count] of open) if (!received.has(clientRequestId)) seat.fallBehind(clientRequestId, count);
    const { kept, watched } = audience;
    for (const turn of kept?.turns ?? []) {
      const count = countAt(turn);
      if (count === undefined) continue;
      seat.fallBehind(turn.clientRequestId, count);
      // This connection may break, too, before it was sent all of it.
      kept?.keep(turn.clientRequestId, turn.number);
    }
    for (const turn of watched) {
      const count = countAt(turn);
      if (count !== undefined) seat.fallBehind(turn.clientRequestId, count);
    }
    if (!seat.isLevel) void this.#catchUpAll(audience, seat);
  }

  /** A connection has ended. */
  leave(listener: Listener, socketId: string): void {
    const audience = this.#audiences.get(keyOf(listener));
    const seat = audience?.seats.find((each) => each.socketId === socketId);
    if (!audience || !seat) return;
    audience.seats = audience.seats.filter((each) => each !== seat);
    if (audience.seats.length > 0) return;
    for (const watched of audience.watched) watched.left = seat.behindOn(watched.clientRequestId) ?? watched.transcript.position;
    this.#expire(audience);
  }

  /** A turn begins to tell, whether anybody is there or not. */
  watch(listener: Listener, clientRequestId: string, transcript: Transcript): Watched {
    const watched: Watched = { transcript, clientRequestId, number: ++this.#begun, isEnded: false, isOver: false, left: 0 };
    const audience = this.#of(listener);
    audience.watched = [...audience.watched, watched];
    return watched;
  }

  /** A turn told something. */
  tell(listener: Listener, watched: Watched, event: TurnEvent, position: number, size: number): void {
    watched.isEnded ||= isEnd(event);
    const audience = this.#audiences.get(keyOf(listener));
    if (!audience) return;
    let place: string | undefined;
    for (const seat of audience.seats) {
      if (seat.behindOn(watched.clientRequestId) !== undefined) continue;
      if (seat.isFull) {
        seat.fallBehind(watched.clientRequestId, position);
        void this.#catchUp(audience, seat, watched.clientRequestId);
      } else if (seat.isLevel) {
        seat.send(this.#given.wire(), event, size, (place ??= this.#placeOf(audience, seat)));
      } else {
        seat.send(this.#given.wire(), event, size, this.#placeOf(audience, seat));
      }
    }
  }

  /** Something that is only worth knowing now. */
  announce(listener: Listener, event: TurnEvent): void {
    for (const { socketId } of this.#audiences.get(keyOf(listener))?.seats ?? []) this.#given.wire().send(socketId, event);
  }

  /** A turn has told everything. */
  finish(listener: Listener, watched: Watched): void {
    watched.isOver = true;
    const audience = this.#audiences.get(keyOf(listener));
    if (!audience) return;
    this.#release(audience, watched);
    if (audience.seats.length === 0 && !audience.expiry) this.#expire(audience);
  }

  close(): void {
    for (const audience of this.#audiences.values()) {
      audience.expiry?.cancel();
      audience.kept?.clear();
      audience.seats = [];
    }
    this.#audiences.clear();
  }

  /** Where a client begins that was not here before, or does not say. */
  #firstPlace(audience: Audience | undefined): string {
    // With another connection still there, this may be the same client, and the other one dead: what that one was sent may never arrive.
    const isAlone = audience?.seats.length === 0;
    const open = (audience?.watched ?? [])
      .filter(({ isEnded, left, transcript }) => !(isEnded && isAlone && left >= transcript.position))
      .map(({ clientRequestId, number, left }) => ({ clientRequestId, number, count: isAlone ? left : 0 }));
    return formatPlace(this.#given.life, this.#begun, open);
  }

  /** Where a client is that has everything that was sent to its connection. */
  #placeOf({ watched, kept }: Audience, seat: Seat): string {
    const open: OpenTurn[] = [];
    for (const { clientRequestId, number, isEnded, transcript } of watched) {
      const count = seat.behindOn(clientRequestId) ?? (isEnded ? undefined : transcript.position);
      if (count !== undefined) open.push({ clientRequestId, number, count });
      // One more than a place lists tells where it ends.
      if (seat.isLevel && open.length > PLACE_TURNS) break;
    }
    for (const [clientRequestId, count] of seat.behind) {
      if (watched.some((each) => each.clientRequestId === clientRequestId)) continue;
      open.push({ clientRequestId, number: kept?.numberOf(clientRequestId) ?? 0, count });
    }
    return formatPlace(this.#given.life, this.#begun, open);
  }

  /** What has ended goes first, and in order: turns of one session tell one after another. */
  async #catchUpAll(audience: Audience, seat: Seat): Promise<void> {
    const missed = [...seat.behind].map(([clientRequestId]) => clientRequestId);
    const isLive = (clientRequestId: string) =>
      audience.watched.some((each) => each.clientRequestId === clientRequestId && !each.isEnded);
    for (const clientRequestId of missed.filter((each) => !isLive(each))) await this.#catchUp(audience, seat, clientRequestId);
    for (const clientRequestId of missed) {
      if (seat.behindOn(clientRequestId) !== undefined) void this.#catchUp(audience, seat, clientRequestId);
    }
  }

  /** Sends a connection what it is behind on with one turn, until it hears that turn as it tells. */
  async #catchUp(audience: Audience, seat: Seat, clientRequestId: string): Promise<void> {
    const watchedNow = () => audience.watched.find((each) => each.clientRequestId === clientRequestId);
    for (;;) {
      const watched = watchedNow();
      try {
        const isThere = watched
          ? await this.#sendWatched(audience, seat, watched)
          : await this.#sendAll(audience, seat, clientRequestId, this.#given.written(audience.listener, clientRequestId));
        if (!isThere) return;
        if (watched) return this.#release(audience, watched);
        // A turn that waited may have begun meanwhile: then it goes on from its transcript.
        if (!watchedNow()) return seat.catchUp(clientRequestId);
      } catch (error) {
        if (!isStoreAway(error)) return void this.#given.wire().drop(seat.socketId);
        // The connection stays behind with this turn, and misses nothing of it without knowing.
        await this.#given.clock.sleep(REPLAY_PAUSE_MS);
        if (!audience.seats.includes(seat)) return;
      }
    }
  }

  /** Until the connection is level with the turn. False when the connection ends first. Rejects with LogUnavailable. */
  async #sendWatched(audience: Audience, seat: Seat, { clientRequestId, transcript }: Watched): Promise<boolean> {
    // Where the log was away, a turn may have told more than it keeps: its end is the last that there is.
    let position = Math.min(seat.behindOn(clientRequestId) ?? 0, Math.max(transcript.position - 1, 0));
    while (position < transcript.position) {
      const { events, next } = await transcript.page(position);
      if (!(await this.#sendAll(audience, seat, clientRequestId, events))) return false;
      position = next;
      if (!(await seat.drained(this.#given.wire()))) return false;
    }
    if (!audience.seats.includes(seat)) return false;
    // At once: what the turn tells from now on is sent as it tells.
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
      // After its end, or one of two ends that a restart may have left, a turn tells nothing.
      if (count === undefined) return true;
      if (!isMissing(event, count)) continue;
      if (seat.isFull && !(await seat.drained(this.#given.wire()))) return false;
      const after = countAfter(event);
      if (after === undefined) seat.catchUp(clientRequestId);
      else seat.fallBehind(clientRequestId, after);
      seat.send(this.#given.wire(), event, JSON.stringify(event.data).length, this.#placeOf(audience, seat));
    }
    return audience.seats.includes(seat);
  }

  /** Let go of a turn of which no connection waits for more: its client may still come back for its end. */
  #release(audience: Audience, watched: Watched): void {
    const { clientRequestId, number } = watched;
    if (!watched.isOver || audience.seats.length === 0 || !audience.watched.includes(watched)) return;
    if (audience.seats.some((seat) => seat.behindOn(clientRequestId) !== undefined)) return;
    audience.watched = audience.watched.filter((each) => each !== watched);
    (audience.kept ??= new KeptTurns(this.#given.clock)).keep(clientRequestId, number);
  }

  /** No client is connected: after a while ended turns are forgotten, and also the audience if nothing is left. */
  #expire(audience: Audience): void {
    audience.expiry = this.#given.clock.after(RETURN_MS, () => {
      audience.expiry = undefined;
      for (const { clientRequestId, number, isOver } of audience.watched) {
        if (isOver) (audience.kept ??= new KeptTurns(this.#given.clock)).keep(clientRequestId, number);
      }
      audience.kept?.clear();
      audience.watched = audience.watched.filter(({ isOver }) => !isOver);
      if (audience.watched.length === 0) this.#audiences.delete(audience.key);
    });
  }

  #of(listener: Listener): Audience {
    const key = keyOf(listener);
    const known = this.#audiences.get(key) ?? {
      key,
      listener,
      seats: [],
      watched: [],
      kept: undefined,
      expiry: undefined,
    };
    this.#audiences.set(key, known);
    return known;
  }
}

/** Whether everything that a client at this place misses is there. */
function isRemembered(audience: Audience | undefined, { begun, numbered }: Place): boolean {
  if (!audience || begun < (audience.kept?.forgotten ?? 0)) return false;
  const numbers = new Set([...(audience.kept?.turns ?? []), ...audience.watched].map(({ number }) => number));
  return [...numbered.keys()].every((number) => numbers.has(number));
}

function keyOf({ userId, clientInstanceId }: Listener): string {
  return JSON.stringify([userId, clientInstanceId]);
}
