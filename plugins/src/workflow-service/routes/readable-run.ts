import { workflowErrors } from "../errors.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { isReadable, readTaskScope } from "../task-scope.ts";
import { readerOf } from "./reader.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/**
 * A run of a workflow that the caller may read, in the task scope of the call. Throws `run_not_found` also for another workflow's run and for one
 * that the caller may not read, and the errors of the scope.
 */
export async function readableRun(
  services: WorkflowServices,
  { id, runId }: { readonly id: string; readonly runId: string },
  query: Parameters<typeof readTaskScope>[0],
  signal: AbortSignal,
): Promise<RunRecord> {
  const { bindings, runs } = services.runtime;
  const canRead = await readerOf(services, signal);
  const scoped = readTaskScope(query, { workflowId: id, bindings, canRead });
  const run = await runs.findOf(id, runId).catch(toStoreError);
  if (!run || !isReadable(run, canRead)) throw workflowErrors.run_not_found();
  if (scoped && run.bindingId !== scoped.bindingId) throw workflowErrors.run_not_found();
  return run;
}
