import { answerFile } from "../files/answer-file.ts";
import { isFileId } from "../files/file-id.ts";
import { readableRun } from "./readable-run.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Sends a file of a run to callers who may read the run. */
export function readFile(services: WorkflowServices): WorkflowHandlers["file"] {
  const { clock, runtime } = services;
  return async ({ params, query, head, exchange, signal, fail }) => {
    const { runId } = await readableRun(services, params, query, signal);
    const { files } = runtime;
    if (!files || !isFileId(params.file)) throw fail.file_not_found();
    const file = await files.find(runId, params.file).catch(toStoreError);
    if (!file) throw fail.file_not_found();
    await answerFile({ exchange, head, file, files, clock, signal }).catch(toStoreError);
  };
}
