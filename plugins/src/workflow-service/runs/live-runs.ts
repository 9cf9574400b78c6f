import type { ports } from "@portico/core";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import { Ledger } from "./ledger.ts";
import type { RunHints } from "./run-hints.ts";

/** A run that this process executes, or whose events a caller here follows. */
export interface LiveRun {
  readonly ledger: Ledger;
  /** Whether this process executes it. Otherwise others may write its ledger. */
  isExecuting: boolean;
  /** While it executes; nodes of the definition itself. */
  completedNodeCount: number;
  /** While it executes: what models used for the attempts of its nodes that have ended. */
  usage?: ports.ModelUsage | undefined;
  /** While it executes: the values that may not be stored in clear text. */
  secrecy?: RunSecrecy | undefined;
  /** The number of its users in this process. */
  users: number;
  /** Ends the subscription that there is: one at a time (specification 6.1). */
  unsubscribe?: (() => void) | undefined;
}

/** The runs that this process executes, or that its callers follow. No other run is in memory. */
export class LiveRuns {
  readonly #log: ports.EventLog;
  readonly #hints: RunHints | undefined;
  readonly #runs = new Map<string, LiveRun>();

  /** `hints`: where several processes share the runs. */
  constructor(log: ports.EventLog, hints?: RunHints) {
    this.#log = log;
    this.#hints = hints;
  }

  find(runId: string): LiveRun | undefined {
    return this.#runs.get(runId);
  }

  /** Whether this process knows more of a run than the log does. */
  knowsMore(live: LiveRun): boolean {
    return live.isExecuting || this.#hints === undefined;
  }

  /** To be given back with `leave`. */
  enter(runId: string): LiveRun {
    const live = this.#runs.get(runId) ?? this.#open(runId);
    live.users++;
    this.#runs.set(runId, live);
    return live;
  }

  leave(live: LiveRun): void {
    live.users--;
    const { runId } = live.ledger;
    if (live.users === 0 && this.#runs.get(runId) === live) this.#runs.delete(runId);
  }

  /** An execution of a run begins in this process. To be given back with `end`. */
  begin(runId: string, held: ports.Write): LiveRun {
    const known = this.#runs.get(runId);
    // An earlier execution that lost the run may not have ended yet. It keeps its own ledger, which it can no longer write.
    const live = known && !known.isExecuting ? known : this.#open(runId);
    this.#runs.set(runId, live);
    live.users++;
    live.isExecuting = true;
    live.completedNodeCount = 0;
    live.usage = undefined;
    if (this.#hints) live.ledger.take(held, () => live.completedNodeCount);
    return live;
  }

  /** The execution ends. Never throws: entries that cannot be written are created again when the run continues. */
  async end(live: LiveRun, { isOver }: { readonly isOver: boolean }): Promise<void> {
    if (!isOver) await live.ledger.write().catch(() => {});
    if (!isOver && this.#hints) live.ledger.give();
    live.isExecuting = false;
    live.secrecy = undefined;
    this.leave(live);
  }

  #open(runId: string): LiveRun {
    const ledger = new Ledger(
      this.#log,
      runId,
      this.#hints?.listener(runId, () => ledger.write()),
    );
    return { ledger, isExecuting: false, completedNodeCount: 0, users: 0 };
  }
}
