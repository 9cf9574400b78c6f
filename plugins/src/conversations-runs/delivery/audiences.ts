import type { Channel, ports } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { OUTSTANDING_CHARACTERS, RETURN_MS, UNCONFIRMED_CHARACTERS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";

/** One client program of one user, with however many connections. */
export interface Listener {
  readonly userId: string;
  readonly clientInstanceId: string;
}

/** One turn that an audience hears. */
export interface Watched {
  readonly transcript: Transcript;
  readonly clientRequestId: string;
  isOver: boolean;
  /** Where whoever comes back goes on, while nobody is there. */
  left: number;
}

/** One connection, and the turns on which it is behind: it is sent these from the transcript, and not as they happen. */
interface Seat {
  readonly socketId: string;
  /** Most connections are never behind: there are many, and they are kept small. */
  behind: Map<Watched, number> | undefined;
  /** Characters that were sent, and of which it is not known whether they have left. */
  outstanding: number;
  isAsked: boolean;
}

interface Audience {
  readonly key: string;
  /** Hardly ever more than one. */
  seats: readonly Seat[];
  watched: readonly Watched[];
  expiry: ports.Timer | undefined;
}

type Wire = Pick<Channel<typeof queryChannel>, "send" | "drained" | "drop">;

/**
 * Brings what turns tell to the connections that may hear it: those of the same user and the same clientInstanceId. A client that comes back
 * within two minutes gets what it missed, in order (open points 7). A connection that takes less than is told is not filled further: it
 * goes on from the transcript when it has taken what it was sent.
 */
export class Audiences {
  readonly #audiences = new Map<string, Audience>();
  readonly #clock: ports.Clock;
  readonly #wire: () => Wire;

  constructor(clock: ports.Clock, wire: () => Wire) {
    this.#clock = clock;
    this.#wire = wire;
  }

  /** A connection stands. `received` says where the client itself knows to have come. */
  join(listener: Listener, socketId: string, received: ReadonlyMap<string, number>): void {
    const audience = this.#of(listener);
    audience.expiry?.cancel();
    audience.expiry = undefined;
    // With another connection still there, this may be the same client, and the other one dead: what that one was sent may never arrive.
    const isAlone = audience.seats.length === 0;
    const seat: Seat = { socketId, behind: undefined, outstanding: 0, isAsked: false };
    audience.seats = [...audience.seats, seat];
    for (const watched of audience.watched) {
      const seq = received.get(watched.clientRequestId);
      void this.#catchUp(audience, seat, watched, seq === undefined && isAlone ? watched.left : 0, seq ?? 0);
    }
  }

  /** A connection is over. */
  leave(listener: Listener, socketId: string): void {
    const audience = this.#audiences.get(keyOf(listener));
    const seat = audience?.seats.find((each) => each.socketId === socketId);
    if (!audience || !seat) return;
    audience.seats = audience.seats.filter((each) => each !== seat);
    if (audience.seats.length > 0) return;
    for (const watched of audience.watched) watched.left = seat.behind?.get(watched) ?? watched.transcript.position;
    this.#expire(audience);
  }

  /** Whether an audience hears this request already, so that nobody replays it twice. */
  hears(listener: Listener, clientRequestId: string): boolean {
    const watched = this.#audiences.get(keyOf(listener))?.watched ?? [];
    return watched.some((each) => each.clientRequestId === clientRequestId);
  }

  /** A turn begins to tell, whether anybody is there or not. */
  watch(listener: Listener, clientRequestId: string, transcript: Transcript): Watched {
    const watched: Watched = { transcript, clientRequestId, isOver: false, left: 0 };
    const audience = this.#of(listener);
    audience.watched = [...audience.watched, watched];
    return watched;
  }

  /** A turn told something. */
  tell(listener: Listener, watched: Watched, event: TurnEvent, position: number, size: number): void {
    const audience = this.#audiences.get(keyOf(listener));
    for (const seat of audience?.seats ?? []) {
      if (seat.behind?.has(watched)) continue;
      if (seat.outstanding > OUTSTANDING_CHARACTERS) void this.#catchUp(audience!, seat, watched, position, 0);
      else this.#send(seat, event, size);
    }
  }

  /** Something that is only worth knowing now. */
  announce(listener: Listener, event: TurnEvent): void {
    for (const { socketId } of this.#audiences.get(keyOf(listener))?.seats ?? []) this.#wire().send(socketId, event);
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
    for (const { expiry } of this.#audiences.values()) expiry?.cancel();
    this.#audiences.clear();
  }

  #send(seat: Seat, event: TurnEvent, size: number): void {
    this.#wire().send(seat.socketId, event);
    seat.outstanding += size;
    if (seat.outstanding <= UNCONFIRMED_CHARACTERS || seat.isAsked) return;
    seat.isAsked = true;
    void this.#wire()
      .drained(seat.socketId)
      .then(() => {
        seat.isAsked = false;
        seat.outstanding = 0;
      });
  }

  async #catchUp(audience: Audience, seat: Seat, watched: Watched, from: number, seq: number): Promise<void> {
    const { transcript } = watched;
    const isHere = () => audience.seats.includes(seat);
    let position = from;
    const behind = (seat.behind ??= new Map());
    behind.set(watched, position);
    try {
      while (position < transcript.position) {
        const { events, next } = await transcript.page(position);
        for (const [at, event] of events.entries()) {
          if (!isHere()) return;
          behind.set(watched, Math.min(position + at, next));
          if (!isAfter(event, seq)) continue;
          if (seat.outstanding > OUTSTANDING_CHARACTERS && !(await this.#drained(seat))) return;
          this.#wire().send(seat.socketId, event);
          seat.outstanding += JSON.stringify(event.data).length;
        }
        position = next;
        behind.set(watched, position);
        if (!(await this.#drained(seat))) return;
      }
    } catch {
      // What was told cannot be read now: whoever comes back tries again, and nobody misses it without knowing.
      this.#wire().drop(seat.socketId);
      return;
    }
    if (!isHere()) return;
    behind.delete(watched);
    this.#release(audience, watched);
  }

  async #drained(seat: Seat): Promise<boolean> {
    const isThere = await this.#wire().drained(seat.socketId);
    seat.outstanding = 0;
    return isThere;
  }

  /** Forget a turn of which nobody waits for more. */
  #release(audience: Audience, watched: Watched): void {
    if (!watched.isOver || audience.seats.length === 0) return;
    if (audience.seats.every(({ behind }) => !behind?.has(watched)))
      audience.watched = audience.watched.filter((each) => each !== watched);
  }

  /** Nobody is there: after a while what is over is forgotten, and so is the audience when nothing is left. */
  #expire(audience: Audience): void {
    audience.expiry = this.#clock.after(RETURN_MS, () => {
      audience.expiry = undefined;
      audience.watched = audience.watched.filter(({ isOver }) => !isOver);
      if (audience.watched.length === 0) this.#audiences.delete(audience.key);
    });
  }

  #of(listener: Listener): Audience {
    const key = keyOf(listener);
    const known = this.#audiences.get(key) ?? { key, seats: [], watched: [], expiry: undefined };
    this.#audiences.set(key, known);
    return known;
  }
}

/** Whether a client that has the messages up to `seq` still misses an event. */
export function isAfter(event: TurnEvent, seq: number): boolean {
  if (event.event === "query:message") return event.data.message.seq > seq;
  return event.event !== "query:started" || seq === 0;
}

function keyOf({ userId, clientInstanceId }: Listener): string {
  return JSON.stringify([userId, clientInstanceId]);
}
