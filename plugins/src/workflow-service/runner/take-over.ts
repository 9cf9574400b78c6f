import { type ports, retryWhileStoreAway, type StoreRetry } from "@portico/core";
import { type Definition, nodeAt } from "../definition/definition.ts";
import { readEntries, type Ledger, readChunks } from "../runs/ledger.ts";
import { type NodeEnded, ledgerStream, type LedgerChunk } from "../runs/ledger-entry.ts";
import { hasNoResults, readResumableResults } from "../runs/resumable-results.ts";
import type { ResumedRun, RunError } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../contracts/run-state.ts";
import { type Hidden, runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";
import { isNodeFailed } from "./attempt.ts";

/** An unfinished node that its resume declares as done, with its output. */
export interface DoneNode {
  readonly nodeId: string;
  readonly output: unknown;
  /** The secret parts of the output, sealed for the new run. */
  readonly hidden?: Hidden | undefined;
  readonly case?: string | undefined;
}

interface Given {
  readonly context: ports.WorkContext;
  readonly runId: string;
  readonly resumes: ResumedRun;
  readonly done: DoneNode | undefined;
  readonly definition: Definition;
  readonly ledger: Ledger;
  readonly runs: RunRecords;
  readonly log: ports.EventLog;
  readonly keeper: SecretKeeper;
  readonly clock: ports.Clock;
  readonly storeRetry: StoreRetry;
}

/** A run that was cancelled a moment ago has not ended yet. */
const LOOK_AGAIN_MS = 500;

/**
 * Copies the results of finished nodes from the history of the resumed run to that of the new run, once. Afterwards, the new run no longer needs the
 * resumed one. Returns why it is impossible, otherwise null.
 */
export async function takeOver(given: Given): Promise<RunError | null> {
  const { context, resumes, runs, storeRetry } = given;
  for (let look = 1; ; look++) {
    const hasEnded = await context.step(`resume look #${look}`, () => retryWhileStoreAway(storeRetry, ended), {
      repeatable: true,
    });
    if (hasEnded) break;
    await context.sleep(`resume pause #${look}`, LOOK_AGAIN_MS);
  }
  // A copy that was interrupted is repeated: history takes each entry once.
  return context.step("resume copy", () => retryWhileStoreAway(storeRetry, () => copy(given)), { repeatable: true });

  async function ended(): Promise<boolean> {
    const found = await runs.find(resumes.runId);
    return !found || isTerminal(found.value.status);
  }
}

/** The results that a run has taken over from the run that it resumes. Only their sequences are in memory. */
export class ReusedResults {
  readonly #log: ports.EventLog;
  readonly #runId: string;
  /** The place in the log of each node's end. */
  readonly #sequences: ReadonlyMap<string, number>;
  #last: { readonly sequence: number; readonly entries: LedgerChunk["entries"] } | undefined;

  constructor(log: ports.EventLog, runId: string, sequences: ReadonlyMap<string, number>) {
    this.#log = log;
    this.#runId = runId;
    this.#sequences = sequences;
  }

  has(nodeId: string): boolean {
    return this.#sequences.has(nodeId);
  }

  /** The end of a node that keeps its result. Undefined for all other nodes. Throws LogUnavailable. */
  async find(nodeId: string): Promise<NodeEnded | undefined> {
    const from = this.#sequences.get(nodeId);
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
  const sequences = new Map<string, number>();
  for await (const { entries, sequence } of readChunks(log, runId)) {
    for (const entry of entries)
      if (entry.kind === "end" && entry.reused && !sequences.has(entry.nodeId)) sequences.set(entry.nodeId, sequence);
  }
  return new ReusedResults(log, runId, sequences);
}

async function copy(given: Given): Promise<RunError | null> {
  const { context, runId, done, ledger, log, keeper } = given;
  const { signal } = context;
  const source = await sourceOf(given);
  if ("code" in source) return source;
  const { runId: sourceId, finished } = source;
  const reseal = async (entry: NodeEnded): Promise<NodeEnded> => {
    const { hidden } = entry.kept ?? {};
    if (!hidden) return { ...entry, reused: true };
    const resealed = await keeper.reseal(runContext(sourceId), runContext(runId), hidden);
    return { ...entry, kept: { ...entry.kept, hidden: resealed }, reused: true };
  };
  try {
    for await (const entry of readEntries(log, sourceId, signal)) {
      if (!finished.has(entry.nodeId)) continue;
      if (entry.kind === "start") ledger.add(entry);
      if (entry.kind === "end") ledger.add(await reseal(entry));
      await ledger.room();
    }
  } catch (error) {
    if (isNodeFailed(error)) return { code: error.code, message: error.message };
    throw error;
  }
  if (done) declareDone(given, done);
  await ledger.write();
  return null;
}

/**
 * The run that has the results, and its finished nodes. A run that was cancelled before it took over any results has none. The run that it
 * resumes still has them.
 */
async function sourceOf({
  context: { signal },
  resumes: { runId: first, repeat },
  definition,
  runs,
  log,
}: Given): Promise<RunError | { readonly runId: string; readonly finished: ReadonlySet<string> }> {
  for (let runId = first; ;) {
    const run = (await runs.find(runId))?.value;
    if (!run) return { code: "resumed_run_missing", message: `The run ${runId}, which this run resumes, was removed` };
    const { finished } = await readResumableResults(log, runId, { definition, repeat: repeat ?? [], signal });
    if (finished.size > 0 || !run.resumes || !hasNoResults(run)) return { runId, finished };
    runId = run.resumes.runId;
  }
}

function declareDone({ definition, ledger, clock }: Given, { nodeId, output, hidden, case: taken }: DoneNode): void {
  const { rules, name } = nodeAt(definition, nodeId)!.node;
  const at = new Date(clock.now()).toISOString();
  ledger.add({ kind: "start", nodeId, type: rules.type, name, at });
  ledger.add({
    ...{ kind: "end", nodeId, type: rules.type, name, status: "completed", outputs: output, attempts: 0 },
    ...{ startedAt: at, completedAt: at, durationMs: 0, reused: true },
    kept: { ...(hidden && { hidden }), ...(taken !== undefined && { case: taken }) },
  });
}
