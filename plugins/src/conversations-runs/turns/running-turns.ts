import { isStoreAway, type ports, type Scope } from "@portico/core";
import type { SharedPorts } from "@portico/core/kit";
import { type StopReason, TurnStopped } from "./turn-failed.ts";
import type { PlayedTurn } from "./turn.ts";

interface Entry {
  readonly signal: AbortSignal;
  readonly stop: (reason: StopReason) => void;
  /** Its user may have said something to it. */
  readonly steer: () => void;
  /** What `read` finds, if the user may have said something since the last call. A read for each call costs a query a tenth of its processor time. */
  readonly steeredBy: <T>(read: () => Promise<readonly T[]>) => Promise<readonly T[]>;
  readonly leave: () => void;
}

/** Which turns are to stop: one, or those of a session, or of one request of it. */
export type Stopped = { readonly turnId: string } | { readonly sessionId: string; readonly clientRequestId?: string | undefined };

interface Running {
  readonly turn: PlayedTurn;
  readonly stopping: AbortController;
  readonly stopOf: () => Promise<string | undefined>;
  /** Its user may have said something since its agent was told last. */
  isSteered: boolean;
}

export interface RunningTurnsGiven extends SharedPorts {
  readonly log: ports.Log;
}

const TOPIC = "conversations-runs/stops";

/** The turns that execute in this process: one per session at most. Others can be stopped through it, too. */
export class RunningTurns {
  readonly #given: RunningTurnsGiven;
  readonly #turns = new Map<string, Running>();

  constructor(given: RunningTurnsGiven, scope: Scope) {
    this.#given = given;
    const subscription = given.bus.subscribe(TOPIC, {
      received: (message) => {
        const { stopped, reason } = message as { readonly stopped: Stopped; readonly reason: string };
        this.stop(stopped, reason);
      },
      missed: () => this.#lookAgain(),
    });
    scope.onClose(() => subscription.close());
  }

  /**
   * Registers a turn that starts to execute. `signal` aborts with TurnStopped when the turn is stopped. Call `leave` when it has ended.
   * `stopOf` finds in stores why it is to stop: used where another process may have said so and was not heard.
   */
  enter(turn: PlayedTurn, stopOf: () => Promise<string | undefined>): Entry {
    const stopping = new AbortController();
    const running: Running = { turn, stopping, stopOf, isSteered: false };
    this.#turns.set(turn.turnId, running);
    return {
      signal: stopping.signal,
      stop: (reason) => stopping.abort(new TurnStopped(reason)),
      steer: () => void (running.isSteered = true),
      async steeredBy(read) {
        if (!running.isSteered) return [];
        // Before the read: what is said meanwhile is read the next time.
        running.isSteered = false;
        try {
          return await read();
        } catch (error) {
          running.isSteered = true;
          throw error;
        }
      },
      leave: () => void this.#turns.delete(turn.turnId),
    };
  }

  /** Stop turns that execute here. Answers whether there was one. */
  stop(stopped: Stopped, reason: string): boolean {
    let isStopped = false;
    for (const { turn, stopping } of this.#turns.values()) {
      if (!isMeant(turn, stopped)) continue;
      stopping.abort(new TurnStopped(reason));
      isStopped = true;
    }
    return isStopped;
  }

  /** Stop turns where they execute. Another process may hear it late, and then finds in stores that they are to stop. */
  stopAnywhere(stopped: Stopped, reason: string): void {
    if (!this.stop(stopped, reason)) this.#given.bus.publish(TOPIC, { stopped, reason }, { toOthers: true });
  }

  /** The user of a turn has said something to it. Processes that share their work do not depend on this: they look in the store. */
  steer(turnId: string): void {
    const running = this.#turns.get(turnId);
    if (running) running.isSteered = true;
  }

  /** Stops that other processes told may have been lost. */
  async #lookAgain(): Promise<void> {
    for (const { stopping, stopOf } of [...this.#turns.values()]) {
      try {
        const reason = await stopOf();
        if (reason !== undefined) stopping.abort(new TurnStopped(reason));
      } catch (error) {
        if (!isStoreAway(error)) throw error;
        this.#given.log.warn("Whether a turn was stopped could not be read", {}, error);
      }
    }
  }
}

function isMeant({ turnId, sessionId, clientRequestId }: PlayedTurn, stopped: Stopped): boolean {
  if ("turnId" in stopped) return turnId === stopped.turnId;
  return sessionId === stopped.sessionId && (stopped.clientRequestId ?? clientRequestId) === clientRequestId;
}
