import type { Readable } from "node:stream";
import type { ports } from "@portico/core";
import { createRunFiles, RUN_FILES } from "./files/run-files.ts";
import { ledgerStream } from "./runs/ledger-entry.ts";
import type { RunRecord } from "./runs/run-record.ts";
import { createRunRecords } from "./runs/run-records.ts";
import { removeData } from "./service/sweep-runs.ts";
import { isTerminal } from "./contracts/run-state.ts";

/** The stores of workflow runs. */
export interface StoredWorkflowRunsGiven {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  /** For messages. */
  readonly messages: ports.Log;
}

/** One stored item of a user: for export. */
export type StoredWorkflowItem =
  | { readonly kind: "workflow-run" | "workflow-history"; readonly value: object }
  /** A file of a run. A file that several runs have comes with each of them. */
  | { readonly kind: "workflow-file"; readonly value: ports.RunFile & { readonly runId: string } };

/** Collections of this area whose records each have one blob: `COLLECTION/ID`. */
export const RUN_FILE_COLLECTIONS: readonly string[] = [RUN_FILES];

/** Access to the runs on behalf of a user, for the operators of an instance. */
export interface StoredWorkflowRuns {
  /** Runs of a user that have not ended. Throws RecordsUnavailable. */
  open(userId: string): AsyncIterable<{ readonly runId: string; readonly workflowId: string }>;
  /** Everything of a user's runs, in pieces. Sensitive values stay encrypted. Throws RecordsUnavailable and LogUnavailable. */
  items(userId: string, signal: AbortSignal): AsyncIterable<StoredWorkflowItem>;
  /** The bytes of a file of a run. Undefined if they are missing. Throws BlobsUnavailable. */
  openFile(file: ports.RunFile, signal: AbortSignal): Promise<Readable | undefined>;
  /**
   * Remove the ended runs of a user with everything that belongs to them. A call that was interrupted can be repeated. Returns how many
   * runs. Throws RecordsUnavailable, LogUnavailable and BlobsUnavailable.
   */
  erase(userId: string, signal: AbortSignal): Promise<number>;
}

/** After all ids of runs. */
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

/** Works in any process, also beside a running service. */
export function createStoredWorkflowRuns({ records, log, blobs, clock, messages }: StoredWorkflowRunsGiven): StoredWorkflowRuns {
  const runs = createRunRecords(records);
  const files = createRunFiles({ records, blobs, clock, log: messages });

  async function* runsOf(userId: string): AsyncGenerator<RunRecord, void> {
    for await (const page of runs.begunBefore(END_OF_TIME)) yield* page.filter((run) => run.userId === userId);
  }

  return {
    async *open(userId) {
      for await (const { runId, workflowId, status } of runsOf(userId)) if (!isTerminal(status)) yield { runId, workflowId };
    },
    async *items(userId, signal) {
      for await (const run of runsOf(userId)) {
        yield { kind: "workflow-run", value: run };
        for await (const entry of log.read(ledgerStream(run.runId), { signal }))
          if (!entry.damaged) yield { kind: "workflow-history", value: { runId: run.runId, ...entry.entry } };
        for await (const page of files.list(run.runId))
          for (const file of page) yield { kind: "workflow-file", value: { runId: run.runId, ...file } };
      }
    },
    openFile: (file, signal) => files.open(file, { signal }),
    async erase(userId, signal) {
      let erased = 0;
      for await (const run of runsOf(userId)) {
        signal.throwIfAborted();
        if (!isTerminal(run.status)) continue;
        await runs.remove([run]);
        erased++;
      }
      // Also those of a call that was interrupted.
      await runs.finishRemovals((removed) => removeData(removed, { eventLog: log, files }), signal);
      signal.throwIfAborted();
      return erased;
    },
  };
}
