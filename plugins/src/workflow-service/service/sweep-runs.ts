import { setTimeout as wait } from "node:timers/promises";
import type { ports } from "@portico/core";
import type { KeyedStarts } from "./keyed-starts.ts";
import type { RunFiles } from "../files/run-files.ts";
import type { UsedGrants } from "../access/grants.ts";
import type { Answers } from "../runs/answers.ts";
import { ledgerStream } from "../runs/ledger-entry.ts";
import type { RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../contracts/run-state.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";

/** How long a used grant is remembered after it has expired: a late repetition gets the run's id, and starts nothing. */
const GRANT_MEMORY_MS = 24 * 60 * 60_000;

export interface Sweeping {
  readonly runs: RunRecords;
  readonly answers: Answers;
  readonly definitions: StoredDefinitions;
  readonly usedGrants: UsedGrants;
  readonly keyedStarts: KeyedStarts;
  readonly eventLog: ports.EventLog;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  /** Undefined without storage for files. */
  readonly files: RunFiles | undefined;
  /** How long runs are kept after their end; undefined: for ever. */
  readonly keepMs: number | undefined;
}

/**
 * Removes data that is no longer needed: runs that ended long ago with all their data, and data without a run. Each piece can be
 * removed twice, and is found again after a kill. What a store refuses is logged, and left for the next time.
 */
export function createSweep(given: Sweeping): (closing: AbortSignal) => Promise<void> {
  const { runs, answers, definitions, usedGrants, clock, log } = given;
  const chores: readonly [what: string, work: (closing: AbortSignal) => Promise<void>][] = [
    ["Histories and files of removed runs", (closing) => removeLedgers(given, closing)],
    ["Old runs", (closing) => removeRuns(given, closing)],
    ["Unused definitions", (closing) => definitions.sweep(runs.isUsed, closing)],
    ["Answers for waiting nodes", (closing) => answers.sweep(async (runId) => !(await isOpen(runs, runId)), closing)],
    ["Old idempotency keys", (closing) => given.keyedStarts.sweep(closing)],
    [
      "Used execution grants",
      async (closing) => {
        while (!closing.aborted && (await usedGrants.sweep(clock.now() - GRANT_MEMORY_MS)));
      },
    ],
  ];
  return async (closing) => {
    for (const [what, work] of chores) {
      try {
        await work(closing);
      } catch (error) {
        if (!closing.aborted) log.error(`${what} could not be removed`, {}, error);
      }
    }
  };
}

/** Ledgers of runs that an earlier sweep, or a killed sweep, removed: reads that were running then have ended by now. */
function removeLedgers({ runs, eventLog, files }: Sweeping, closing: AbortSignal): Promise<void> {
  return runs.finishRemovals(async (removed) => {
    const begun = performance.now();
    await removeData(removed, { eventLog, files });
    await pauseSince(begun, closing);
  }, closing);
}

/** Removes the ledgers and files of removed runs. */
export async function removeData(
  removed: readonly { readonly id: string }[],
  { eventLog, files }: Pick<Sweeping, "eventLog" | "files">,
): Promise<void> {
  await Promise.all(removed.map(({ id }) => eventLog.remove(ledgerStream(id))));
  for (const { id } of removed) await files?.removeOf(id);
}

async function removeRuns({ runs, clock, keepMs }: Sweeping, closing: AbortSignal): Promise<void> {
  if (keepMs === undefined) return;
  const before = clock.now() - keepMs;
  // A run that began later has not ended before.
  for await (const page of runs.begunBefore(Math.max(0, before))) {
    if (closing.aborted) return;
    const begun = performance.now();
    const isOld = await Promise.all(page.map((run) => isRemovable(runs, run, before)));
    const old = page.filter((_run, at) => isOld[at]);
    if (old.length > 0) await runs.remove(old);
    await pauseSince(begun, closing);
  }
}

/** Leaves the store to others for as long as the last piece took. */
async function pauseSince(begun: number, closing: AbortSignal): Promise<void> {
  await wait(performance.now() - begun, undefined, { signal: closing }).catch(() => {});
}

/** A run that another run started, or resumes, stays while that run continues, which may read it again after a crash. */
async function isRemovable(
  runs: RunRecords,
  { status, completedAt, parent, resumedBy }: RunRecord,
  before: number,
): Promise<boolean> {
  if (!isTerminal(status) || completedAt === undefined || Date.parse(completedAt) >= before) return false;
  if (resumedBy && (await isOpen(runs, resumedBy.runId))) return false;
  return parent === undefined || !(await isOpen(runs, parent.runId));
}

async function isOpen(runs: RunRecords, runId: string): Promise<boolean> {
  const run = await runs.find(runId);
  return run !== undefined && !isTerminal(run.value.status);
}
