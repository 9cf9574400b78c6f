import { RUNS_LIMIT } from "@portico/plugins/conversations-runs/client";
import type { Run } from "./run.ts";

/** The filters in the address: `#/runs?agent_id=helper&status=failed`. An empty filter matches everything. */
export interface RunFilters {
  /** Words of a search. Empty: the list of all runs. */
  readonly q: string;
  readonly limit: string;
  readonly agent_id: string;
  readonly delegated_by: string;
  readonly parent_run_id: string;
  /** The list has no filter for the status, and includes archived runs. These two filters apply to the loaded runs. */
  readonly status: string;
  readonly archived: string;
}

export const LIMITS = [RUNS_LIMIT, 200, 1_000] as const;

/** The choices, by the list's own terms. Interrupted runs were stopped and can continue. */
export const STATUSES: Readonly<Record<string, string>> = {
  running: "Running",
  idle: "Idle",
  interrupted: "Interrupted",
  completed: "Completed",
  failed: "Failed",
};

export function readFilters(query: URLSearchParams): RunFilters {
  const of = (name: string) => query.get(name) ?? "";
  const limit = LIMITS.some((each) => `${each}` === of("limit")) ? of("limit") : `${RUNS_LIMIT}`;
  const names = { agent_id: of("agent_id"), delegated_by: of("delegated_by"), parent_run_id: of("parent_run_id") };
  return { q: of("q").trim(), limit, ...names, status: of("status"), archived: of("archived") };
}

/** The filters as part of an address. */
export function writeFilters(filters: RunFilters): string {
  const given = Object.entries(filters).filter(
    ([name, value]) => value !== "" && !(name === "limit" && value === `${RUNS_LIMIT}`),
  );
  return new URLSearchParams(given).toString();
}

/** The query of the list. */
export function queryOf({ q: _words, status: _status, archived: _archived, ...query }: RunFilters) {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
}

/** Filters the loaded runs. */
export function isWanted(run: Run, { status, archived, delegated_by, parent_run_id }: RunFilters): boolean {
  if (delegated_by !== "" && run.delegation?.fromAgentId !== delegated_by) return false;
  if (parent_run_id !== "" && run.delegation?.parentRunId !== parent_run_id) return false;
  if (run.archived_at !== undefined && archived !== "shown") return false;
  if (status === "interrupted") return run.interruption_reason !== undefined;
  return status === "" || run.status === status;
}
