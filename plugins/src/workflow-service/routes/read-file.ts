import {
  allowsRange,
  checkConditions,
  contentDisposition,
  type Exchange,
  httpDate,
  type ports,
  readRange,
  type RequestHead,
  sendStream,
  ServiceError,
} from "@portico/core";
import { isFileId, type ListedFile, type RunFiles } from "../files/run-files.ts";
import { readableRun, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import { workflowErrors } from "../contracts/errors.ts";

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

/**
 * Sends a file of a run, or the requested range of it. Browsers save it, and never show it: workflows take files from anywhere. Throws `file_not_found` if its bytes are
 * missing, `range_not_satisfiable`, and BlobsUnavailable.
 */
async function answerFile(given: {
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly file: ListedFile;
  readonly files: RunFiles;
  readonly clock: ports.Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { exchange, head, file, files, signal } = given;
  const { size } = file;
  const validators = { etag: `"${file.sha256}"`, lastModified: Date.parse(file.createdAt) };
  const always = {
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
    etag: validators.etag,
    "last-modified": httpDate(validators.lastModified),
  };
  const outcome = checkConditions(head, validators);
  // If the bytes are sent, `open` checks that they exist.
  const isUnopened = head.method === "HEAD" || outcome !== "proceed";
  if (isUnopened && !(await files.isWhole(file))) throw workflowErrors.file_not_found();
  if (outcome === "not_modified") return void exchange.respond(304, always).end();
  if (outcome === "precondition_failed") return void exchange.respond(412, { "content-length": "0" }).end();
  const range = allowsRange(head, validators) ? readRange(head.header("range"), size) : "whole";
  if (range === "unsatisfiable")
    throw new ServiceError(workflowErrors.range_not_satisfiable, { headers: { "content-range": `bytes */${size}` } });
  const isWhole = range === "whole";
  await sendStream(given, {
    status: isWhole ? 200 : 206,
    headers: {
      ...always,
      "content-type": "application/octet-stream",
      "content-disposition": contentDisposition("attachment", file.name),
      "content-security-policy": "sandbox",
      "content-length": `${isWhole ? size : range.end - range.start + 1}`,
      ...(!isWhole && { "content-range": `bytes ${range.start}-${range.end}/${size}` }),
    },
    async open() {
      const stream = await files.open(file, { ...(!isWhole && range), signal });
      if (!stream) throw workflowErrors.file_not_found();
      return stream;
    },
  });
}
