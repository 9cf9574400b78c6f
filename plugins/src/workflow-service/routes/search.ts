import { type FindPlace, wordsOf, ports, readFindCursor, toFindCursor } from "@portico/core";
import type { InferOutput } from "valibot";
import { isSearchable } from "../definition/check-search.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { SEARCH_WORDS } from "../contracts/limits.ts";
import { runSummary, completedNodesIn } from "./history.ts";
import type { FieldValues, RunRecord } from "../runs/run-record.ts";
import { type RunSearch, askedOf } from "../runs/run-search.ts";
import type { searchQuery } from "../contracts/search-contract.ts";
import { isReadable } from "../access/task-scope.ts";
import { readerOf, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";

type Asked = InferOutput<typeof searchQuery>;

/** Finds runs that the caller may read, the newest first. */
export function searchRuns(services: WorkflowServices): WorkflowHandlers["searchRuns"] {
  const { catalogue, runs } = services.runtime;
  const completedNodes = completedNodesIn(services);
  const found = async (run: RunRecord) => {
    const { workflowId, definition: version, fields } = run;
    return { workflowId, ...runSummary(run, await completedNodes(run)), version, ...(fields && { fields }) };
  };

  const readCursor = async (
    name: "cursor" | "before",
    cursor: string | undefined,
    search: RunSearch,
  ): Promise<FindPlace | undefined> => {
    if (cursor === undefined) return undefined;
    const place = await readSearchCursor(services.sealing, search, cursor);
    if (!place) throw invalid(`${name} must be the ${name === "cursor" ? "next" : "previous"} of a page of the same search`);
    return place;
  };

  return async ({ query, signal, fail }) => {
    const canRead = await readerOf(services, signal);
    const search = readSearch(query);
    const { workflowId } = search;
    const deployed = workflowId === undefined ? undefined : catalogue.find(workflowId);
    if (workflowId !== undefined && !deployed && !(await runs.last(workflowId).catch(toStoreError)))
      throw fail.workflow_not_found();
    for (const kind of ["parameters", "outputs"] as const) {
      for (const name of Object.keys(search.fields[kind] ?? {})) {
        // Without a deployed definition, earlier ones may have declared it.
        if (deployed && !isSearchable(deployed, kind, name))
          throw fail.invalid_request(`The workflow ${workflowId} does not declare ${name} in search.${kind}`);
      }
    }
    try {
      const [after, before] = await Promise.all([
        readCursor("cursor", query.cursor, search),
        readCursor("before", query.before, search),
      ]);
      if (after && before) throw invalid("give cursor or before, not both");
      const { items, next, previous } = await runs.search(search, {
        after,
        before,
        limit: query.limit,
        isReadable: (run) => isReadable(run, canRead),
      });
      return {
        runs: await Promise.all(items.map(found)),
        ...(next && { next: await toSearchCursor(services.sealing, search, next) }),
        ...(previous && { previous: await toSearchCursor(services.sealing, search, previous) }),
      };
    } catch (error) {
      return toStoreError(error);
    }
  };
}

function readSearch(query: Asked): RunSearch {
  const { workflowId, status, userId, startedFrom, startedBefore, q, parameter, output, version } = query;
  return {
    ...{ workflowId, status, userId, version },
    from: toTime(startedFrom),
    before: toTime(startedBefore),
    words: readWords(q),
    fields: { parameters: readFieldValues(parameter), outputs: readFieldValues(output) },
  };
}

function readWords(text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const words = wordsOf(text, SEARCH_WORDS + 1);
  if (words.length > 0 && words.length <= SEARCH_WORDS) return words;
  throw invalid(`q must be 1-${SEARCH_WORDS} words of letters and digits`);
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

const CONTEXT = "workflow-run-search";

/**
 * A text from which the same search continues after a place. It is sealed: the place may be a run that the caller may not read. Throws
 * SealingUnavailable.
 */
function toSearchCursor(sealing: ports.Sealing, search: RunSearch, place: FindPlace): Promise<string> {
  return sealing.seal(CONTEXT, toFindCursor(askedOf(search), place));
}

/** The place of a cursor. Undefined for an invalid cursor, and for one of another search. Throws SealingUnavailable. */
async function readSearchCursor(sealing: ports.Sealing, search: RunSearch, cursor: string): Promise<FindPlace | undefined> {
  try {
    return readFindCursor(askedOf(search), await sealing.open(CONTEXT, cursor));
  } catch (error) {
    if (error instanceof ports.SealBroken) return undefined;
    throw error;
  }
}
