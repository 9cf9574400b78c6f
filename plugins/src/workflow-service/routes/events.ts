import { followRun } from "../follow-run.ts";
import { isReadable } from "../task-scope.ts";
import { readerOf } from "./reader.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Tells the events of a run: those so far, then the live ones. */
export function followEvents(services: WorkflowServices): WorkflowHandlers["events"] {
  const { log, closing, runtime } = services;
  const { runs, live, instance } = runtime;
  return async ({ query: { runId }, signal, say, fail }) => {
    if (typeof runId !== "string" || runId === "") throw fail.run_id_required();
    const run = (await runs.find(runId).catch(toStoreError))?.value;
    // 6.1: of a run that another process accepted nothing is live here. 4.2: what may not be read is not there.
    if (!run || run.instance !== instance || !isReadable(run, await readerOf(services, signal))) throw fail.run_not_found();
    return followRun({ run, runs, live, log, say, signal: AbortSignal.any([signal, closing]) });
  };
}
