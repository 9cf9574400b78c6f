import { isStoreAway, type ports } from "@portico/core";
import type { WATCH_ENDS } from "../channel.ts";
import {
  OUTSTANDING_CHARACTERS,
  REPLAY_PAUSE_MS,
  WATCH_LOOKS,
  WATCH_MS,
  WATCH_WAITING_MS,
  WATCHES_PER_SOCKET,
} from "../limits.ts";
import { type ClientRequest, isOpenRequest } from "../requests/client-requests.ts";
import { eventsOf } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import { countOf, isEnd, isMissing } from "./missing.ts";
import type { Wire } from "./connection.ts";

/** A turn that a connection watches. Users may use the same `clientRequestId`, but not in the same conversation. */
export interface WatchedTurn {
  readonly conversationId: string;
  readonly clientRequestId: string;
  /** Undefined if the caller can see no such turn. */
  readonly find: () => Promise<ClientRequest | undefined>;
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
 * Connections that watch turns of other client programs. Their events are read from the written transcript, which each process can read: so
 * a turn costs nothing more where it executes, and no event is lost. Events arrive a moment later than at the client that submitted it.
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
    const { log, clock, wire } = this.#given;
    let [from, outstanding] = [1, 0];
    /** Sends what is written and was not sent. Returns whether the watch goes on. */
    const send = async (turnId: string): Promise<boolean> => {
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
    let request: ClientRequest | undefined;
    for (let silent = WATCH_LOOKS; ; silent++) {
      try {
        const before = from;
        const isLook = silent >= WATCH_LOOKS || request?.waits !== undefined;
        if (isLook) request = (await find()) ?? (request && { ...request, state: "ended" });
        signal.throwIfAborted();
        if (!request) return "not_found";
        // Read before the output: an end that is written between the two is sent.
        const isOver = isLook && !isOpenRequest(request);
        if (!(await send(request.turnId))) return undefined;
        // The output of a turn is removed some time after its end. Then there is no end to wait for.
        if (isOver) return "output_removed";
        if (from > before || isLook) silent = 0;
        await clock.sleep(request.waits === undefined ? WATCH_MS : WATCH_WAITING_MS, signal);
      } catch (error) {
        if (signal.aborted || !isStoreAway(error)) throw error;
        await clock.sleep(REPLAY_PAUSE_MS, signal);
      }
    }
  }
}
