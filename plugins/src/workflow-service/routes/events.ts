import { followRun } from "../follow-run.ts";
import { readRunPlace } from "../run-event-ids.ts";
import { isReadable } from "../task-scope.ts";
import { readerOf } from "./reader.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Sends the events of a run: the past events, or those after the `Last-Event-ID`, then the live ones. */
export function followEvents(services: WorkflowServices): WorkflowHandlers["events"] {
  const { log, closing, runtime, clock, ids } = services;
  const { runs, live, hints, isLive } = runtime;
  return async ({ query: { runId }, head, signal, say, fail }) => {
    if (typeof runId !== "string" || runId === "") throw fail.run_id_required();
    const run = (await runs.find(runId).catch(toStoreError))?.value;
    // 4.2: a run that may not be read counts as missing. 6.1: a run of a dead process has no live events.
    if (!run || !isReadable(run, await readerOf(services, signal))) throw fail.run_not_found();
    if (!(await isLive(run).catch(toStoreError))) throw fail.run_not_found();
    const shared = hints && { hints, mark: { at: clock.now(), id: ids.uuid() } };
    const after = readRunPlace(runId, head.header("last-event-id"));
    return followRun({ run, after, runs, live, log, say, shared, signal: AbortSignal.any([signal, closing]) });
  };
}
