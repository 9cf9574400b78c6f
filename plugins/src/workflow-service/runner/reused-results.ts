import type { ports } from "@portico/core";
import { readChunks } from "../runs/ledger.ts";
import { ledgerStream, type LedgerChunk, type NodeEnded } from "../runs/ledger-entry.ts";

/** The results that a run has taken over from the run that it resumes. Only their places are in memory. */
export class ReusedResults {
  readonly #log: ports.EventLog;
  readonly #runId: string;
  /** The place in the log of each node's end. */
  readonly #places: ReadonlyMap<string, number>;
  #last: { readonly sequence: number; readonly entries: LedgerChunk["entries"] } | undefined;

  constructor(log: ports.EventLog, runId: string, places: ReadonlyMap<string, number>) {
    this.#log = log;
    this.#runId = runId;
    this.#places = places;
  }

  has(nodeId: string): boolean {
    return this.#places.has(nodeId);
  }

  /** The end of a node that keeps its result. Undefined for all other nodes. Throws LogUnavailable. */
  async find(nodeId: string): Promise<NodeEnded | undefined> {
    const from = this.#places.get(nodeId);
    if (from === undefined) return undefined;
    if (this.#last?.sequence !== from) {
      for await (const { sequence, entries } of readChunks(this.#log, this.#runId, { from, limit: 1 }))
        this.#last = { sequence, entries };
    }
    const found = this.#last?.entries.find((entry) => entry.kind === "end" && entry.nodeId === nodeId);
    if (found?.kind === "end") return found;
    throw new Error(`${ledgerStream(this.#runId)} no longer has the result of a node`);
  }
}

/** The results that the ledger of this run has taken over. Throws LogUnavailable. */
export async function openReusedResults(log: ports.EventLog, runId: string): Promise<ReusedResults> {
  const places = new Map<string, number>();
  for await (const { entries, sequence } of readChunks(log, runId)) {
    for (const entry of entries)
      if (entry.kind === "end" && entry.reused && !places.has(entry.nodeId)) places.set(entry.nodeId, sequence);
  }
  return new ReusedResults(log, runId, places);
}
