import {
  countRuns as countFound,
  ports,
  readRunCursors,
  readSearchWords,
  RUN_SEARCH,
  RunCursorInvalid,
  writeRunCursors,
} from "@portico/core";
import type { InferOutput } from "valibot";
import { isSearchable } from "../definition/check-search.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { runSummary, completedNodesIn } from "./history.ts";
import type { FieldValues, RunRecord } from "../runs/run-record.ts";
import type { SearchedRuns } from "../runs/run-search.ts";
import type { countQuery } from "../contracts/search-contract.ts";
import { type CanRead, isReadable } from "../access/task-scope.ts";
import { readerOf, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";

/** Finds runs that the caller may read, the newest first. */
export function searchRuns(services: WorkflowServices): WorkflowHandlers["searchRuns"] {
  const completedNodes = completedNodesIn(services);
  const found = async (run: RunRecord) => {
    const { workflowId, definition: version, fields } = run;
    return { workflowId, ...runSummary(run, await completedNodes(run)), version, ...(fields && { fields }) };
  };
  return async ({ query: { limit, cursor, before, ...filters }, signal }) => {
    const canRead = await readerOf(services, signal);
    const search = readSearch(filters);
    await assertKnown(services, search);
    const { items, ...cursors } = await findRuns(services, search, { limit, cursor, before, canRead });
    return { runs: await Promise.all(items.map(found)).catch(toStoreError), ...cursors };
  };
}

/** A page of the runs that match and that the caller may read, with its sealed cursors. Throws `invalid_request`, and errors of stores. */
export async function findRuns(
  { runtime: { runs }, sealing }: WorkflowServices,
  search: SearchedRuns,
  asked: {
    readonly cursor?: string | undefined;
    readonly before?: string | undefined;
    readonly limit: number;
    readonly canRead: CanRead;
  },
): Promise<{ readonly items: readonly RunRecord[]; readonly next?: string | undefined; readonly previous?: string | undefined }> {
  const { cursor: after, before, limit, canRead } = asked;
  /** A sealed cursor, as the caller gave it. Undefined for an invalid one. Throws SealingUnavailable. */
  const open = async (cursor: string): Promise<string | undefined> => {
    try {
      return await sealing.open(CONTEXT, cursor);
    } catch (error) {
      if (error instanceof ports.SealBroken) return undefined;
      throw error;
    }
  };
  try {
    const place = await readRunCursors(search, { after, before }, { names: ["cursor", "before"], open });
    const page = await runs.search(search, { ...place, limit, isReadable: (run) => isReadable(run, canRead) });
    // The place may be a run that the caller may not read.
    const cursors = await writeRunCursors(search, page, (cursor) => sealing.seal(CONTEXT, cursor));
    return { items: page.items, ...cursors };
  } catch (error) {
    if (error instanceof RunCursorInvalid) throw invalid(error.message);
    return toStoreError(error);
  }
}

/** Counts the runs that a search finds, and that the caller may read. */
export function countRuns(services: WorkflowServices): WorkflowHandlers["countRuns"] {
  const { runs } = services.runtime;
  return async ({ query, signal }) => {
    const canRead = await readerOf(services, signal);
    const search = readSearch(query);
    await assertKnown(services, search);
    const statuses: Record<string, number> = {};
    const { total, isComplete, groups, leftOut } = await countFound<RunRecord>(
      (page) => runs.search(search, { ...page, isReadable: (run) => isReadable(run, canRead) }),
      ({ workflowId, status, error }) => {
        statuses[status] = (statuses[status] ?? 0) + 1;
        return [workflowId, status, error?.code, error?.nodeId];
      },
    ).catch(toStoreError);
    return {
      ...{ total, complete: isComplete, statuses, leftOut },
      groups: groups.map(({ count, newest: { workflowId, status, error, runId, completedAt, startedAt } }) => ({
        ...{ workflowId, status, count },
        ...(error && { error: error.code, ...(error.nodeId !== undefined && { nodeId: error.nodeId }) }),
        newest: { runId, at: completedAt ?? startedAt, ...(error && { message: error.message }) },
      })),
    };
  };
}

/** Throws `workflow_not_found`, and `invalid_request` for fields that the workflow does not declare. */
async function assertKnown({ runtime: { catalogue, runs } }: WorkflowServices, search: SearchedRuns): Promise<void> {
  const { workflowId, parameter = {}, output = {} } = search;
  const deployed = workflowId === undefined ? undefined : catalogue.find(workflowId);
  if (workflowId !== undefined && !deployed && !(await runs.last(workflowId).catch(toStoreError)))
    throw workflowErrors.workflow_not_found();
  for (const [kind, fields] of Object.entries({ parameters: parameter, outputs: output })) {
    for (const name of Object.keys(fields)) {
      // Without a deployed definition, earlier ones may have declared it.
      if (deployed && !isSearchable(deployed, kind as "parameters" | "outputs", name))
        throw workflowErrors.invalid_request(`The workflow ${workflowId} does not declare ${name} in search.${kind}`);
    }
  }
}

function readSearch(query: InferOutput<typeof countQuery>): SearchedRuns {
  const { startedFrom, startedBefore, endedFrom, q, parameter, output, ...others } = query;
  return {
    ...others,
    endedFrom: toTime(endedFrom),
    from: toTime(startedFrom),
    before: toTime(startedBefore),
    q: readWords(q),
    parameter: readFieldValues(parameter),
    output: readFieldValues(output),
  };
}

function readWords(text: string | undefined): readonly string[] | undefined {
  const words = text === undefined ? undefined : readSearchWords(text);
  if (text === undefined || words) return words;
  throw invalid(`q must be 1-${RUN_SEARCH.words} words of letters and digits`);
}

function readFieldValues(given: readonly string[]): FieldValues | undefined {
  if (given.length === 0) return undefined;
  const values = new Map<string, string>();
  for (const each of given) {
    const name = each.slice(0, each.indexOf("="));
    // A run has one value for it.
    if (values.has(name)) throw invalid(`${name} is given twice`);
    values.set(name, each.slice(name.length + 1));
  }
  return Object.fromEntries(values);
}

function toTime(text: string | undefined): string | undefined {
  return text === undefined ? undefined : new Date(text).toISOString();
}

function invalid(message: string) {
  return workflowErrors.invalid_request(`Invalid search: ${message}`);
}

/** What the seals of cursors are for. */
const CONTEXT = "workflow-run-search";
