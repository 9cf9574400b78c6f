import { isDeepStrictEqual } from "node:util";
import type { ListChanges } from "@portico/core/kit";
import { gateSignal } from "../runs/gates.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import type { LiveRun } from "../runs/live-runs.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { advanceRun } from "../contracts/run-state.ts";
import type { Deadline } from "./deadline.ts";

/** The parts of an execution that the openGates reads. */
interface Executing {
  readonly live: Pick<LiveRun, "completedNodeCount" | "ledger">;
  readonly deadline: Pick<Deadline, "standstill">;
  /** Tells the followers of open gates. */
  readonly changes: Pick<ListChanges, "notify">;
}

/**
 * Updates the record of an executing run: the gates that wait for a person, the pauses of the run's timeout, and the number of completed
 * nodes.
 */
export class OpenGates {
  readonly #runs: RunRecords;
  readonly #runId: string;
  readonly #executing: Executing;
  readonly #open = new Map<string, Gate>();
  readonly #answered = new Set<string>();
  /** The gates that are in the record. */
  #shown: ReadonlyMap<string, Gate>;
  #completedNodeCount: number;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(runs: RunRecords, { runId, gates = [], completedNodeCount }: RunRecord, executing: Executing) {
    this.#runs = runs;
    this.#runId = runId;
    this.#executing = executing;
    this.#completedNodeCount = completedNodeCount;
    for (const gate of gates) this.#open.set(gate.nodeId, gate);
    this.#shown = new Map(this.#open);
  }

  /** Whether the record was changed. */
  hasWritten = false;

  /** The signals whose answers are kept until the run ends. */
  get answered(): readonly string[] {
    return [...this.#answered];
  }

  /** A node that shows nothing in the record waits for an answer with this signal. */
  expects(signal: string): void {
    this.#answered.add(signal);
  }

  /** Whether a gate is open. Includes gates that an earlier execution opened. */
  isOpen(nodeId: string): boolean {
    return this.#open.has(nodeId);
  }

  /** Resolves when the gate is visible in the record. If it throws an error of a store, it can be called again. */
  async open(gate: Gate): Promise<void> {
    // An earlier execution may have shown more of it.
    if (!this.#shown.has(gate.nodeId)) {
      this.#open.set(gate.nodeId, gate);
      await this.#write();
    }
  }

  /** Shows more of an open gate. If it throws an error of a store, it can be called again. */
  async change(gate: Gate): Promise<void> {
    const { nodeId } = gate;
    if (!this.#open.has(nodeId) || isDeepStrictEqual(this.#shown.get(nodeId), gate)) return;
    this.#open.set(nodeId, gate);
    await this.#write();
  }

  /** Resolves when the gate is no longer visible. If it throws an error of a store, it can be called again. */
  async close(nodeId: string): Promise<void> {
    this.#answered.add(gateSignal(nodeId));
    this.#open.delete(nodeId);
    if (this.#shown.has(nodeId)) await this.#write();
  }

  /**
   * Call it if the execution ends before the run. Lists show the record until the next execution. It does not change gates, because another
   * process may already own the run. Throws errors of the store.
   */
  async leave(): Promise<void> {
    const { completedNodeCount: count } = this.#executing.live;
    if (count > this.#completedNodeCount) await this.#runs.change(this.#runId, (run) => withCount(run, count));
  }

  /** Writes one after another. Each write contains the gates that are open at its time. */
  #write(): Promise<void> {
    this.hasWritten = true;
    const written = this.#writing.then(async () => {
      const gates = [...this.#open.values()].sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
      const { live, deadline, changes } = this.#executing;
      const { standstill } = deadline;
      const { completedNodeCount: count } = live;
      await live.ledger.show();
      await this.#runs.change(this.#runId, (run) => ({ ...withGates(withCount(run, count), gates), standstill }));
      this.#completedNodeCount = Math.max(this.#completedNodeCount, count);
      changes.notify();
      this.#shown = new Map(gates.map((gate) => [gate.nodeId, gate]));
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}

/** Takes the larger number, because an execution that repeats finished nodes has not reached all of them yet. */
function withCount(run: RunRecord, count: number): RunRecord {
  return { ...run, completedNodeCount: Math.max(run.completedNodeCount, count) };
}

function withGates({ gates: _gates, ...run }: RunRecord, open: readonly Gate[]): RunRecord {
  const status = advanceRun(run.status, open.length > 0 ? "gate-opened" : "gates-closed");
  return { ...run, status, ...(open.length > 0 && { gates: open }) };
}
