import type { ports } from "@portico/core";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import { Ledger } from "./ledger.ts";

/** A run that this process executes, or whose events somebody here follows. */
export interface LiveRun {
  readonly ledger: Ledger;
  /** While it executes; nodes of the definition itself. */
  completedNodeCount: number;
  /** While it executes: what may not be stored as it is. */
  secrecy?: RunSecrecy | undefined;
  /** Who of this process still needs it. */
  users: number;
  /** Ends the subscription that there is: one at a time (specification 6.1). */
  unsubscribe?: (() => void) | undefined;
}

/** The runs of this process that somebody works on or watches; of all others there is nothing in memory. */
export class LiveRuns {
  readonly #log: ports.EventLog;
  readonly #runs = new Map<string, LiveRun>();

  constructor(log: ports.EventLog) {
    this.#log = log;
  }

  find(runId: string): LiveRun | undefined {
    return this.#runs.get(runId);
  }

  /** To be given back with `leave`. */
  enter(runId: string): LiveRun {
    const live = this.#runs.get(runId) ?? { ledger: new Ledger(this.#log, runId), completedNodeCount: 0, users: 0 };
    live.users++;
    this.#runs.set(runId, live);
    return live;
  }

  leave(live: LiveRun): void {
    live.users--;
    if (live.users === 0) this.#runs.delete(live.ledger.runId);
  }
}
