import type { Gate } from "../runs/ledger-entry.ts";
import type { LiveRun } from "../runs/live-runs.ts";
import type { RunRecord, RunRecords } from "../runs/run-records.ts";
import { advanceRun } from "../runs/run-state.ts";
import type { Deadline } from "./deadline.ts";

/** What an execution of a run goes by. */
interface Executing {
  readonly live: Pick<LiveRun, "completedNodeCount">;
  readonly deadline: Pick<Deadline, "standstill">;
}

/**
 * What the record of one run shows of it under way: the gates that wait for a person, with the time that is stopped meanwhile, and how many
 * nodes have completed.
 */
export class GateBoard {
  readonly #runs: RunRecords;
  readonly #runId: string;
  readonly #executing: Executing;
  readonly #open = new Map<string, Gate>();
  readonly #decided = new Set<string>();
  /** What the record says. */
  #shown: ReadonlySet<string>;
  #completedNodeCount: number;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(runs: RunRecords, { runId, gates = [], completedNodeCount }: RunRecord, executing: Executing) {
    this.#runs = runs;
    this.#runId = runId;
    this.#executing = executing;
    this.#completedNodeCount = completedNodeCount;
    for (const gate of gates) this.#open.set(gate.nodeId, gate);
    this.#shown = new Set(this.#open.keys());
  }

  /** Whether the record is not what it was any more. */
  hasWritten = false;

  /** Ids of the gates whose decisions are kept until the run ends. */
  get decided(): readonly string[] {
    return [...this.#decided];
  }

  /** Also of a gate that an earlier execution opened. */
  isOpen(nodeId: string): boolean {
    return this.#open.has(nodeId);
  }

  /** Resolves when everybody can see it. What it throws, a store's, leaves it to be called again. */
  async open(gate: Gate): Promise<void> {
    this.#open.set(gate.nodeId, gate);
    if (!this.#shown.has(gate.nodeId)) await this.#write();
  }

  /** Resolves when the gate is no longer visible. If it throws an error of a store, it can be called again. */
  async close(nodeId: string): Promise<void> {
    this.#decided.add(nodeId);
    this.#open.delete(nodeId);
    if (this.#shown.has(nodeId)) await this.#write();
  }

  /**
   * The execution ends before the run does: lists go by the record until the next one. Does not change gates: the run may be another process's by
   * now. Throws what a store throws.
   */
  async leave(): Promise<void> {
    const { completedNodeCount: count } = this.#executing.live;
    if (count > this.#completedNodeCount) await this.#runs.change(this.#runId, (run) => withCount(run, count));
  }

  /** One behind the other, each with what is open then. */
  #write(): Promise<void> {
    this.hasWritten = true;
    const written = this.#writing.then(async () => {
      const gates = [...this.#open.values()].sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
      const { live, deadline } = this.#executing;
      const { standstill } = deadline;
      const { completedNodeCount: count } = live;
      await this.#runs.change(this.#runId, (run) => ({ ...withGates(withCount(run, count), gates), standstill }));
      this.#completedNodeCount = Math.max(this.#completedNodeCount, count);
      this.#shown = new Set(gates.map(({ nodeId }) => nodeId));
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}

/** An execution that goes through finished nodes again has not come to all of them yet. */
function withCount(run: RunRecord, count: number): RunRecord {
  return { ...run, completedNodeCount: Math.max(run.completedNodeCount, count) };
}

function withGates({ gates: _gates, ...run }: RunRecord, open: readonly Gate[]): RunRecord {
  const status = advanceRun(run.status, open.length > 0 ? "gate-opened" : "gates-closed");
  return { ...run, status, ...(open.length > 0 && { gates: open }) };
}
