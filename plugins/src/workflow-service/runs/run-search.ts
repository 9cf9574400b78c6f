import { hash } from "node:crypto";
import { RUN_SEARCH, type RunCriteria, type RunCriterion, type RunIndexSpec, type RunSearch, wordCriterion } from "@portico/core";
import type { InferOutput } from "valibot";
import { isTerminal } from "../contracts/run-state.ts";
import { searchQuery } from "../contracts/search-contract.ts";
import { RUN_LIST, type RunKey } from "./run-id.ts";
import type { FieldValues, RunRecord } from "./run-record.ts";

type Query = InferOutput<typeof searchQuery>;

/** The parameters that are not criteria. */
const OF_PAGES = ["startedFrom", "startedBefore", "limit", "cursor", "before"] as const;

/** The criteria that `runIndex` declares. */
export interface Declared extends Pick<Query, "workflowId" | "status" | "version"> {
  /** The code of the error, and the node that failed. */
  readonly error?: string | undefined;
  readonly node?: string | undefined;
  /** Ended at this time or later (ISO 8601 in UTC, with milliseconds). */
  readonly endedFrom?: string | undefined;
  /** Words of the error, in any order. */
  readonly q?: readonly string[] | undefined;
  readonly parameter?: FieldValues | undefined;
  readonly output?: FieldValues | undefined;
  /** The open runs of a schedule. Runs that were started by hand do not have it. */
  readonly schedule?: string | undefined;
}

/** All other parameters are named as the field of a run that has the value. */
type SameName = Exclude<keyof Query, (typeof OF_PAGES)[number] | keyof Declared>;
type Found = Declared & { readonly [Name in SameName]?: Name extends keyof RunRecord ? RunRecord[Name] : never };

/** The criteria of a search for runs. All of them must match. */
export type SearchedRuns = RunSearch<Found>;

/** The tag of the open runs of a schedule. */
export const scheduleTag = (name: string): string => `c:${name}`;

/** How runs are stored and found. The owner of a run is its workflow. */
export const runIndex: RunIndexSpec<RunRecord, RunKey, Found> = {
  collections: { runs: "workflow-runs", keys: "workflow-run-list", tags: "workflow-run-tags", removed: "workflow-removed-runs" },
  indexes: RUN_LIST,
  time: "startedAt",
  owner: "workflowId",
  idOf: ({ runId }) => runId,
  keyOf: ({ workflowId, startedAt, definition, bindingId }) => ({
    ...{ workflowId, startedAt, definition },
    ...(bindingId !== undefined && { bindingId }),
  }),
  criteria: sameNames({
    workflowId: { of: ({ workflowId }) => workflowId, key: "workflowId" },
    // Most runs are completed: the list of all runs shows them as well.
    status: {
      of: ({ status }) => status,
      tags: (status) => (isTerminal(status) ? (status === "completed" ? [] : [`s:${status}`]) : ["s:open"]),
    },
    version: { of: ({ definition }) => definition, key: "definition" },
    error: { of: ({ error }) => error?.code, tags: (code) => (code.length > 100 || /\s/.test(code) ? [] : [`e:${code}`]) },
    node: { of: ({ error }) => error?.nodeId },
    endedFrom: { of: ({ completedAt }) => completedAt, includes: (found, wanted) => found >= wanted },
    parameter: fieldCriterion("parameters"),
    output: fieldCriterion("outputs"),
    schedule: {
      of: ({ status, schedule }) => (isTerminal(status) || schedule?.plannedAt === undefined ? undefined : schedule.name),
      tags: (name) => [scheduleTag(name)],
    },
    q: wordCriterion(({ error }) =>
      error ? [[`${error.code} ${error.nodeId ?? ""} ${error.message}`, RUN_SEARCH.textWords]] : [],
    ),
  }),
};

function sameNames(declared: RunCriteria<RunRecord, Declared>): RunCriteria<RunRecord, Found> {
  const known = new Set<string>([...OF_PAGES, ...Object.keys(declared)]);
  const names = Object.keys(searchQuery.entries).filter((name) => !known.has(name));
  const same = names.map((name) => [name, { of: (run: RunRecord) => run[name as keyof RunRecord] }] as const);
  return { ...Object.fromEntries(same), ...declared } as RunCriteria<RunRecord, Found>;
}

function fieldCriterion(kind: "parameters" | "outputs"): RunCriterion<RunRecord, FieldValues> {
  return {
    of: ({ fields }) => fields?.[kind],
    includes: (found, wanted) =>
      Object.entries(wanted).every(([name, value]) => Object.hasOwn(found, name) && found[name] === value),
    // A value may be longer than a tag, and may contain spaces.
    tags: (values) =>
      Object.entries(values).map(
        ([name, value]) => `f:${hash("sha256", JSON.stringify([kind, name, value]), "base64url").slice(0, 22)}`,
      ),
  };
}
