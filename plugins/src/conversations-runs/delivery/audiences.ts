import type { Channel, ports } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { REPLAY_PAGE, RETURN_MS } from "../limits.ts";
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

/** One connection, and the turns on which it is still behind: it is sent these from the transcript, and not as they happen. */
interface Seat {
  readonly socketId: string;
  readonly behind: Map<Watched, number>;
}

interface Audience {
  readonly seats: Map<string, Seat>;
  readonly watched: Set<Watched>;
  expiry: ports.Timer | undefined;
}

type Wire = Pick<Channel<typeof queryChannel>, "send" | "drained">;

/**
 * Brings what turns tell to the connections that may hear it: those of the same user and the same clientInstanceId. A client that comes back
 * within two minutes gets what it missed, in order (open points 7).
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
  join(listener: Listener, socketId: string, received: Readonly<Record<string, number>> = {}): void {
    const audience = this.#of(listener);
    audience.expiry?.cancel();
    audience.expiry = undefined;
    const wasEmpty = audience.seats.size === 0;
    const seat: Seat = { socketId, behind: new Map() };
    audience.seats.set(socketId, seat);
    for (const watched of audience.watched) {
      const seq = received[watched.clientRequestId];
      if (seq !== undefined) void this.#catchUp(audience, seat, watched, 0, seq);
      else if (wasEmpty) void this.#catchUp(audience, seat, watched, watched.left, 0);
    }
  }

  /** A connection is over. */
  leave(listener: Listener, socketId: string): void {
    const key = keyOf(listener);
    const audience = this.#audiences.get(key);
    const seat = audience?.seats.get(socketId);
    if (!audience || !seat) return;
    audience.seats.delete(socketId);
    if (audience.seats.size > 0) return;
    for (const watched of audience.watched) watched.left = seat.behind.get(watched) ?? watched.transcript.position;
    audience.expiry = this.#clock.after(RETURN_MS, () => this.#audiences.delete(key));
  }

  /** Whether an audience hears this request already, so that nobody replays it twice. */
  hears(listener: Listener, clientRequestId: string): boolean {
    const watched = this.#audiences.get(keyOf(listener))?.watched ?? [];
    return [...watched].some((each) => each.clientRequestId === clientRequestId);
  }

  /** A turn begins to tell. Nothing is kept for a client that has been away for too long. */
  watch(listener: Listener, clientRequestId: string, transcript: Transcript): Watched {
    const watched: Watched = { transcript, clientRequestId, isOver: false, left: 0 };
    this.#audiences.get(keyOf(listener))?.watched.add(watched);
    return watched;
  }

  /** A turn told something: its newest event. */
  tell(listener: Listener, watched: Watched, event: TurnEvent): void {
    for (const seat of this.#audiences.get(keyOf(listener))?.seats.values() ?? []) {
      if (!seat.behind.has(watched)) this.#wire().send(seat.socketId, event);
    }
  }

  /** Something that is only worth knowing now. */
  announce(listener: Listener, event: TurnEvent): void {
    for (const { socketId } of this.#audiences.get(keyOf(listener))?.seats.values() ?? []) this.#wire().send(socketId, event);
  }

  /** A turn has told everything. */
  finish(listener: Listener, watched: Watched): void {
    watched.isOver = true;
    const audience = this.#audiences.get(keyOf(listener));
    if (audience) this.#release(audience, watched);
  }

  close(): void {
    for (const { expiry } of this.#audiences.values()) expiry?.cancel();
    this.#audiences.clear();
  }

  async #catchUp(audience: Audience, seat: Seat, watched: Watched, from: number, seq: number): Promise<void> {
    const { transcript } = watched;
    seat.behind.set(watched, from);
    for (let position = from; audience.seats.has(seat.socketId);) {
      const page = position < transcript.position ? await transcript.page(position, REPLAY_PAGE).catch(() => []) : [];
      if (page.length === 0) break;
      for (const event of page.filter((each) => isAfter(each, seq))) this.#wire().send(seat.socketId, event);
      position += page.length;
      seat.behind.set(watched, position);
      if (!(await this.#wire().drained(seat.socketId))) return;
    }
    if (!audience.seats.has(seat.socketId)) return;
    seat.behind.delete(watched);
    this.#release(audience, watched);
  }

  /** Forget a turn of which nobody waits for more. */
  #release(audience: Audience, watched: Watched): void {
    if (!watched.isOver || audience.seats.size === 0) return;
    if ([...audience.seats.values()].every(({ behind }) => !behind.has(watched))) audience.watched.delete(watched);
  }

  #of(listener: Listener): Audience {
    const key = keyOf(listener);
    const known = this.#audiences.get(key) ?? { seats: new Map(), watched: new Set(), expiry: undefined };
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
