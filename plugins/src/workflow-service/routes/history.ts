import { jsonList } from "@portico/core";
import { readFinalOutputs } from "../follow-run.ts";
import { runDetail, runSummary } from "../run-pages.ts";
import { type PlacedEntry, readEntries } from "../runs/ledger.ts";
import type { LedgerEntry } from "../runs/ledger-entry.ts";
import { isReadable, readTaskScope } from "../task-scope.ts";
import { completedNodesIn } from "./completed-nodes.ts";
import { readableRun } from "./readable-run.ts";
import { readerOf } from "./reader.ts";
import { orStoreError, toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Lists the runs of a workflow, or of a task, the newest first. */
export function listRuns(services: WorkflowServices): WorkflowHandlers["runs"] {
  const { bindings, catalogue, runs } = services.runtime;
  const completedNodes = completedNodesIn(services);
  return async ({ params: { id }, query, signal, fail }) => {
    const canRead = await readerOf(services, signal);
    const scoped = readTaskScope(query, { workflowId: id, bindings, canRead });
    if (!catalogue.find(id) && !(await runs.last(id).catch(toStoreError))) throw fail.workflow_not_found();
    const pages = scoped ? runs.newestBound(scoped.bindingId) : runs.newest(id);
    return jsonList(
      "runs",
      (async function* () {
        for await (const page of orStoreError(pages)) {
          const shown = page.filter((run) => run.workflowId === id && isReadable(run, canRead));
          yield await Promise.all(shown.map(async (run) => runSummary(run, await completedNodes(run).catch(toStoreError))));
        }
      })(),
    );
  };
}

/** Shows one run with all its nodes. */
export function readRun(services: WorkflowServices): WorkflowHandlers["run"] {
  const { log, runtime } = services;
  const { files, live, runs } = runtime;
  return async ({ params, query, signal }) => {
    const run = await readableRun(services, params, query, signal);
    const { runId } = run;
    const found = live.find(runId);
    const executing = found && live.knowsMore(found) ? found : undefined;
    // Its execution may have begun just now.
    await executing?.ledger.recall().catch(toStoreError);
    const entries = executing ? entriesOf(executing.ledger.read({ signal })) : readEntries(log, runId, signal);
    const newer = run.resumedBy && (await runs.find(run.resumedBy.runId).catch(toStoreError));
    return runDetail(run, {
      newer: newer?.value,
      entries: orStoreError(entries),
      finalOutputs: () => readFinalOutputs(log, runId).catch(toStoreError),
      files: files && orStoreError(files.list(runId)),
    });
  };
}

async function* entriesOf(placed: AsyncIterable<PlacedEntry>): AsyncGenerator<LedgerEntry, void> {
  for await (const { entry } of placed) yield entry;
}
