import type { Gate } from "../runs/ledger-entry.ts";
import type { RunRecord, RunRecords } from "../runs/run-records.ts";
import { advanceRun } from "../runs/run-state.ts";
import type { Deadline } from "./deadline.ts";

/** The gates of one run that wait for a person, as its record shows them, with the time that stands still meanwhile. */
export class GateBoard {
  readonly #runs: RunRecords;
  readonly #runId: string;
  readonly #deadline: Pick<Deadline, "standstill">;
  readonly #open = new Map<string, Gate>();
  readonly #decided = new Set<string>();
  /** What the record says. */
  #shown: ReadonlySet<string>;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(runs: RunRecords, { runId, gates = [] }: RunRecord, deadline: Pick<Deadline, "standstill">) {
    this.#runs = runs;
    this.#runId = runId;
    this.#deadline = deadline;
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

  /** Resolves when nobody sees it any more. What it throws, a store's, leaves it to be called again. */
  async close(nodeId: string): Promise<void> {
    this.#decided.add(nodeId);
    this.#open.delete(nodeId);
    if (this.#shown.has(nodeId)) await this.#write();
  }

  /** One behind the other, each with what is open then. */
  #write(): Promise<void> {
    this.hasWritten = true;
    const written = this.#writing.then(async () => {
      const gates = [...this.#open.values()].sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
      const { standstill } = this.#deadline;
      await this.#runs.change(this.#runId, (run) => ({ ...withGates(run, gates), standstill }));
      this.#shown = new Set(gates.map(({ nodeId }) => nodeId));
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}

function withGates({ gates: _gates, ...run }: RunRecord, open: readonly Gate[]): RunRecord {
  const status = advanceRun(run.status, open.length > 0 ? "gate-opened" : "gates-closed");
  return { ...run, status, ...(open.length > 0 && { gates: open }) };
}
