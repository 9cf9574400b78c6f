import type { ports } from "@portico/core";
import type { WATCH_ENDS } from "../channel.ts";
import { OUTSTANDING_CHARACTERS, WATCHES_PER_SOCKET } from "../limits.ts";
import type { Wire } from "./connection.ts";
import { countOf } from "./missing.ts";
import { type ReadTurn, readTurn } from "./read-turn.ts";

/** A turn that a connection watches. Users may use the same `clientRequestId`, but not in the same conversation. */
export interface WatchedTurn {
  readonly conversationId: string;
  readonly clientRequestId: string;
  readonly find: ReadTurn["find"];
}

export interface WatchedTurnsGiven {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly wire: () => Pick<Wire, "send" | "drained">;
}

type WatchEnd = (typeof WATCH_ENDS)[number];

interface Watch {
  readonly turn: WatchedTurn;
  readonly stopping: AbortController;
}

/**
 * Connections that watch turns of other client programs, with the events of `readTurn`.
 */
export class WatchedTurns {
  readonly #given: WatchedTurnsGiven;
  /** By connection, the oldest first. */
  readonly #watches = new Map<string, Set<Watch>>();

  constructor(given: WatchedTurnsGiven) {
    this.#given = given;
  }

  /**
   * Sends the events after the message `seq`, until the end of the turn. If the watch ends before, the connection is told why. A second watch
   * of the same turn replaces the first.
   */
  watch(socketId: string, turn: WatchedTurn, seq: number): void {
    this.unwatch(socketId, turn.clientRequestId, turn.conversationId);
    const own = this.#watches.get(socketId) ?? new Set<Watch>();
    this.#watches.set(socketId, own);
    const [oldest] = own;
    if (oldest && own.size >= WATCHES_PER_SOCKET) this.#end(socketId, oldest, "too_many");
    const watch = { turn, stopping: new AbortController() };
    own.add(watch);
    void this.#follow(socketId, turn, countOf(seq), watch.stopping.signal).then(
      (reason) => this.#end(socketId, watch, reason),
      (error: unknown) => {
        if (watch.stopping.signal.aborted) return;
        this.#given.telemetry.log.error("A turn cannot be watched", { socket: socketId }, error);
        this.#end(socketId, watch, "failed");
      },
    );
  }

  /** Without a conversation, each turn of this `clientRequestId`. */
  unwatch(socketId: string, clientRequestId: string, conversationId?: string): void {
    for (const watch of this.#watches.get(socketId) ?? []) {
      const { turn } = watch;
      if (turn.clientRequestId !== clientRequestId) continue;
      if (conversationId === undefined || turn.conversationId === conversationId) this.#end(socketId, watch);
    }
  }

  /** The connection has ended. */
  leave(socketId: string): void {
    for (const { stopping } of this.#watches.get(socketId) ?? []) stopping.abort();
    this.#watches.delete(socketId);
  }

  close(): void {
    for (const socketId of [...this.#watches.keys()]) this.leave(socketId);
  }

  /** Frees the slot of a watch. `reason`: what the connection is told. */
  #end(socketId: string, watch: Watch, reason?: WatchEnd): void {
    if (!this.#watches.get(socketId)?.delete(watch)) return;
    watch.stopping.abort();
    const { conversationId, clientRequestId } = watch.turn;
    if (reason)
      this.#given.wire().send(socketId, { event: "query:watch-ended", data: { conversationId, clientRequestId, reason } });
  }

  /** Resolves with the reason if the turn has no end that could be sent. */
  async #follow(socketId: string, { find }: WatchedTurn, count: number, signal: AbortSignal): Promise<WatchEnd | undefined> {
    const { wire } = this.#given;
    const events = readTurn(this.#given, { find, count }, signal);
    let outstanding = 0;
    try {
      for (let next = await events.next(); ; next = await events.next()) {
        if (next.done) return next.value;
        wire().send(socketId, next.value);
        outstanding += JSON.stringify(next.value.data).length;
        if (outstanding <= OUTSTANDING_CHARACTERS) continue;
        if (!(await wire().drained(socketId))) return undefined;
        outstanding = 0;
      }
    } finally {
      await events.return(undefined);
    }
  }
}
