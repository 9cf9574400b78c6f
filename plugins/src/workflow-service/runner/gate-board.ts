import type { Gate } from "../runs/ledger-entry.ts";
import type { RunRecord, RunRecords } from "../runs/run-records.ts";
import { advanceRun } from "../runs/run-state.ts";

/** The gates of one run that wait for a person, as its record shows them. */
export class GateBoard {
  readonly #runs: RunRecords;
  readonly #runId: string;
  readonly #open = new Map<string, Gate>();
  readonly #decided = new Set<string>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(runs: RunRecords, { runId, gates = [] }: RunRecord) {
    this.#runs = runs;
    this.#runId = runId;
    for (const gate of gates) this.#open.set(gate.nodeId, gate);
  }

  /** Whether the record is not what it was any more. */
  hasWritten = false;

  /** Ids of the gates whose decisions are kept until the run ends. */
  get decided(): readonly string[] {
    return [...this.#decided];
  }

  /** Resolves when everybody can see it. */
  async open(gate: Gate): Promise<void> {
    // A resumed run meets its gates again.
    if (this.#open.has(gate.nodeId)) return;
    this.#open.set(gate.nodeId, gate);
    await this.#write();
  }

  async close(nodeId: string): Promise<void> {
    this.#decided.add(nodeId);
    if (this.#open.delete(nodeId)) await this.#write();
  }

  /** One behind the other, each with what is open then. */
  #write(): Promise<void> {
    this.hasWritten = true;
    const written = this.#writing.then(async () => {
      const gates = [...this.#open.values()].sort((a, b) => (a.requestedAt < b.requestedAt ? -1 : 1));
      await this.#runs.change(this.#runId, (run) => withGates(run, gates));
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}

function withGates({ gates: _gates, ...run }: RunRecord, open: readonly Gate[]): RunRecord {
  const status = advanceRun(run.status, open.length > 0 ? "gate-opened" : "gates-closed");
  return { ...run, status, ...(open.length > 0 && { gates: open }) };
}
