import { type StopReason, TurnStopped } from "./turn-failed.ts";
import type { PlayedTurn } from "./turn.ts";

interface Entry {
  readonly signal: AbortSignal;
  readonly stop: (reason: StopReason) => void;
  readonly leave: () => void;
}

/** The turns that execute in this process: one per session at most. */
export class TurnDesk {
  readonly #turns = new Map<string, { readonly turn: PlayedTurn; readonly stopping: AbortController }>();
  readonly #agents = new Map<string, number>();

  /** Registers a turn that starts to execute. `signal` aborts with TurnStopped when the turn is stopped. Call `leave` when it has ended. */
  enter(turn: PlayedTurn): Entry {
    const stopping = new AbortController();
    this.#turns.set(turn.turnId, { turn, stopping });
    this.#count(turn.agentId, 1);
    return {
      signal: stopping.signal,
      stop: (reason) => stopping.abort(new TurnStopped(reason)),
      leave: () => {
        if (this.#turns.delete(turn.turnId)) this.#count(turn.agentId, -1);
      },
    };
  }

  /** Stop the turns of a session, or of one request of it. Answers whether there was one. */
  stop(sessionId: string, clientRequestId: string | undefined, reason: StopReason): boolean {
    let isStopped = false;
    for (const { turn, stopping } of this.#turns.values()) {
      if (turn.sessionId !== sessionId || (clientRequestId !== undefined && turn.clientRequestId !== clientRequestId)) continue;
      stopping.abort(new TurnStopped(reason));
      isStopped = true;
    }
    return isStopped;
  }

  /** Stop one turn, where it executes. */
  stopTurn(turnId: string, reason: string): void {
    this.#turns.get(turnId)?.stopping.abort(new TurnStopped(reason));
  }

  /** Whether an agent plays a turn now. */
  isBusy(agentId: string): boolean {
    return (this.#agents.get(agentId) ?? 0) > 0;
  }

  #count(agentId: string, by: number): void {
    const count = (this.#agents.get(agentId) ?? 0) + by;
    if (count > 0) this.#agents.set(agentId, count);
    else this.#agents.delete(agentId);
  }
}
