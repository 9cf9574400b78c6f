import { isStoreAway, type ports } from "@portico/core";
import { OUTSTANDING_CHARACTERS, REPLAY_PAUSE_MS, WATCH_LOOKS, WATCH_MS, WATCHES_PER_SOCKET } from "../limits.ts";
import { eventsOf } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import { countOf, isEnd, isMissing } from "./missing.ts";
import type { Wire } from "./seat.ts";

/** A turn that a connection watches. */
export interface WatchedTurn {
  readonly turnId: string;
  readonly clientRequestId: string;
  /** Whether it still waits or executes. */
  readonly isOpen: () => Promise<boolean>;
}

export interface WatchedTurnsGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly wire: () => Pick<Wire, "send" | "drained">;
}

/**
 * Connections that watch turns of other client programs. Their events are read from the written transcript, which each process can read: so
 * a turn costs nothing more where it executes, and no event is lost. Events arrive a moment later than at the client that submitted it.
 */
export class WatchedTurns {
  readonly #given: WatchedTurnsGiven;
  /** By connection, and then by `clientRequestId`, the oldest first. */
  readonly #watches = new Map<string, Map<string, AbortController>>();

  constructor(given: WatchedTurnsGiven) {
    this.#given = given;
  }

  /** Sends the events after the message `seq`, until the end of the turn. A second watch of the same turn replaces the first. */
  watch(socketId: string, turn: WatchedTurn, seq: number): void {
    this.unwatch(socketId, turn.clientRequestId);
    const own = this.#watches.get(socketId) ?? new Map<string, AbortController>();
    this.#watches.set(socketId, own);
    const [oldest] = own.keys();
    if (oldest !== undefined && own.size >= WATCHES_PER_SOCKET) this.unwatch(socketId, oldest);
    const stopping = new AbortController();
    own.set(turn.clientRequestId, stopping);
    void this.#follow(socketId, turn, countOf(seq), stopping.signal).then(
      () => {
        if (own.get(turn.clientRequestId) === stopping) own.delete(turn.clientRequestId);
      },
      (error: unknown) => {
        if (!stopping.signal.aborted) this.#given.telemetry.log.error("A turn cannot be watched", { turn: turn.turnId }, error);
      },
    );
  }

  unwatch(socketId: string, clientRequestId: string): void {
    const own = this.#watches.get(socketId);
    own?.get(clientRequestId)?.abort();
    own?.delete(clientRequestId);
  }

  /** The connection has ended. */
  leave(socketId: string): void {
    for (const watch of this.#watches.get(socketId)?.values() ?? []) watch.abort();
    this.#watches.delete(socketId);
  }

  close(): void {
    for (const socketId of [...this.#watches.keys()]) this.leave(socketId);
  }

  async #follow(socketId: string, { turnId, isOpen }: WatchedTurn, count: number, signal: AbortSignal): Promise<void> {
    const { log, clock, wire } = this.#given;
    let [from, outstanding] = [1, 0];
    /** Sends what is written and was not sent. Returns whether the watch goes on. */
    const send = async (): Promise<boolean> => {
      for await (const entry of log.read(transcriptStream(turnId), { from, signal })) {
        for (const event of eventsOf(entry).filter((each) => isMissing(each, count))) {
          wire().send(socketId, event);
          if (isEnd(event)) return false;
          outstanding += JSON.stringify(event.data).length;
        }
        from = entry.sequence + 1;
        if (outstanding <= OUTSTANDING_CHARACTERS) continue;
        if (!(await wire().drained(socketId))) return false;
        outstanding = 0;
      }
      return !signal.aborted;
    };
    for (let silent = 0; ; silent++) {
      try {
        const before = from;
        // The output of a turn is removed some time after its end. Then there is no end to wait for.
        const isLast = silent >= WATCH_LOOKS && !(await isOpen());
        if (!(await send()) || isLast) return;
        if (from > before || silent >= WATCH_LOOKS) silent = 0;
        await clock.sleep(WATCH_MS, signal);
      } catch (error) {
        if (signal.aborted || !isStoreAway(error)) throw error;
        await clock.sleep(REPLAY_PAUSE_MS, signal);
      }
    }
  }
}
