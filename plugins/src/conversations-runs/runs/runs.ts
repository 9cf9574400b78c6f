import {
  createRunIndex,
  type ports,
  RUN_SEARCH,
  type RunCriterion,
  type RunIndexSpec,
  type RunSearch,
  wordCriterion,
} from "@portico/core";
import type { InferOutput } from "valibot";
import type { runMetadata } from "../contract.ts";
import { isCode, type Parameter, readCode, readFilter, readFlag, readOneOf, readTime, readWords } from "../pagination.ts";
import { outcomeOf, reasonOf } from "./run-outcome.ts";
import { OUTCOMES, type runFilters } from "../run-counts-contract.ts";
import { advanceRun, type RunEvent, runTransitions } from "./run-state.ts";

/** A run as it is stored and shown (specification 2.11). */
export type Run = InferOutput<typeof runMetadata>;

export type Runs = ReturnType<typeof createRuns>;

/** A criterion of a search, with how its parameter is read. */
interface Criterion<Value> extends RunCriterion<Run, Value> {
  /** Throws `invalid_filter`. */
  read(name: string, value: Parameter): Value | undefined;
}

/** The parameters of a search that are criteria. */
type CriterionName = Exclude<keyof typeof runFilters, "started_from" | "started_before">;

const by = <Value>(criterion: Criterion<Value>): Criterion<Value> => criterion;
/** Those of most runs have no list: the list of all runs shows them as well. */
const LISTED: readonly Run["status"][] = ["running", "failed"];
const { textWords } = RUN_SEARCH;

/** The criteria of searches for runs, by their parameters. */
export const runCriteria = {
  user_id: by({ read: readFilter, of: ({ user_id }) => user_id, key: "user_id" }),
  agent_id: by({ read: readFilter, of: ({ agent_id }) => agent_id, key: "agent_id" }),
  delegated_by: by({ read: readFilter, of: ({ delegation }) => delegation?.fromAgentId, key: "delegated_by" }),
  parent_run_id: by({ read: readFilter, of: ({ delegation }) => delegation?.parentRunId, key: "parent_run_id" }),
  status: by({
    read: readOneOf(Object.keys(runTransitions) as Run["status"][]),
    of: ({ status }) => status,
    tags: (status) => (LISTED.includes(status) ? [`s:${status}`] : []),
  }),
  /** Runs of background turns. */
  background: by({ read: readFlag, of: ({ background = false }) => background }),
  archived: by({ read: readFlag, of: ({ archived_at }) => archived_at !== undefined }),
  /** Runs whose last turn was interrupted. */
  interrupted: by({ read: readFlag, of: ({ interruption_reason }) => interruption_reason !== undefined }),
  /** A failed run is on the list of its status. */
  outcome: by({
    read: readOneOf(OUTCOMES),
    of: outcomeOf,
    tags: (outcome) =>
      outcome === "completed" ? [] : [outcome === "failed" || outcome === "running" ? `s:${outcome}` : `o:${outcome}`],
  }),
  reason: by({ read: readCode, of: reasonOf, tags: (reason) => (isCode(reason) ? [`e:${reason}`] : []) }),
  /** Runs whose last turn ended at this time or later. */
  ended_from: by({
    read: readTime,
    of: ({ turn_ended_at }) => turn_ended_at,
    includes: (found, wanted) => found >= wanted,
  }),
  /** Words of the title, and of the reason why it failed. */
  q: by({
    read: readWords,
    ...wordCriterion(({ title = "", failure, failure_reason: reason = "" }) => [
      [title, textWords],
      [failure || reason ? `${reason} ${failure?.code ?? ""} ${failure?.message ?? ""}` : "", textWords],
    ]),
  }),
} satisfies Readonly<Record<CriterionName, Criterion<any>>>;

type Found = {
  -readonly [Name in keyof typeof runCriteria]?: ReturnType<(typeof runCriteria)[Name]["read"]>;
};

/** The criteria of a search for runs. All of them must match. */
export type SearchedRuns = RunSearch<Found>;

/**
 * The keys by which runs are found. Written when a run begins and removed when its conversation is cleared, so that turns do not touch its
 * indexes.
 */
export interface RunKey {
  readonly user_id: string;
  readonly agent_id: string;
  readonly started_at: string;
  /** `delegation.fromAgentId` and `delegation.parentRunId`. */
  readonly delegated_by?: string | undefined;
  readonly parent_run_id?: string | undefined;
}

/** Any set of these may be asked for, all at once (specification 4.6). */
const FILTERS = ["user_id", "agent_id", "delegated_by", "parent_run_id"] as const;

/** Every set of filters has an index of its own, so that no list reads more than it shows. */
const runIndex: RunIndexSpec<Run, RunKey, Found> = {
  collections: { runs: "runs", keys: "run-list", tags: "run-tags", removed: "removed-runs" },
  indexes: indexesOf(FILTERS),
  time: "started_at",
  owner: "user_id",
  idOf: ({ run_id }) => run_id,
  keyOf: ({ user_id, agent_id, started_at, delegation }) => ({
    ...{ user_id, agent_id, started_at },
    ...(delegation && {
      delegated_by: delegation.fromAgentId,
      ...(delegation.parentRunId !== undefined && { parent_run_id: delegation.parentRunId }),
    }),
  }),
  // A cleared run is in no list.
  isFound: ({ cleared = false }) => !cleared,
  criteria: runCriteria as RunIndexSpec<Run, RunKey, Found>["criteria"],
};

/** The runs of an instance. Ids begin with the time of the run, except those of keys. */
export function createRuns(records: ports.Records) {
  return {
    ...createRunIndex(records, runIndex),
    writeAll: (writes: readonly ports.Write[]): Promise<void> => records.batch(writes),
  };
}

/** A run after an event at this time (ISO 8601). */
export function withEvent(run: Run, event: RunEvent, at: string, facts: Partial<Run> = {}): Run {
  const status = advanceRun(run.status, event);
  const {
    completed_at: _completed,
    failure_reason: _reason,
    failure: _failure,
    interruption_reason: _why,
    interrupted_at: _at,
    completion_reason: _how,
    retry_at: _retry,
    ...rest
  } = run;
  const { approvals: _approvals, ...kept } = event === "turn-began" ? rest : run;
  return { ...kept, status, updatedAt: at, ...facts };
}

/** Whether another attempt of the run's background turn is planned. */
export const isPlanned = ({ retry_at }: Run): boolean => retry_at !== undefined;

function indexesOf(fields: readonly string[]): ports.CollectionSpec["indexes"] & object {
  const sets = fields.reduce<string[][]>((all, field) => [...all, ...all.map((set) => [...set, field])], [[]]);
  return Object.fromEntries(sets.map((set) => [`by_${set.join("_and_")}`, [...set, "started_at"]]));
}
