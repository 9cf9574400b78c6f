import type { Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { isWanted, queryOf, type RunFilters } from "./run-filters.ts";
import type { Run } from "./run.ts";

type Calls = Pick<Client<typeof conversationsRunsContract>, "runs" | "searchRuns">;

export interface FoundRuns {
  readonly runs: readonly Run[];
  /** There may be more. */
  readonly isFull: boolean;
  /** The service still indexes runs of an earlier version. */
  readonly isIndexing: boolean;
}

/** Calls of one search. Each looks at a bounded number of runs. */
const MOST_CALLS = 10;
const PAGE = "200";

/** The runs that the filters want: of the list, or, with words, of a search. */
export async function loadRuns(calls: Calls, filters: RunFilters, signal: AbortSignal): Promise<FoundRuns> {
  const limit = Number(filters.limit);
  if (filters.q === "") {
    const { runs } = await calls.runs({ query: queryOf(filters), signal });
    return { runs, isFull: runs.length >= limit, isIndexing: false };
  }
  const { q, agent_id, status } = filters;
  const query = {
    q,
    limit: PAGE,
    ...(agent_id && { agent_id }),
    ...(status && { status: status === "interrupted" ? "idle" : status }),
  };
  const runs: Run[] = [];
  let [after, isIndexing]: [string | undefined, boolean] = [undefined, false];
  for (let call = 0; call < MOST_CALLS; call++) {
    const page = await calls.searchRuns({ query: { ...query, ...(after !== undefined && { after }) }, signal });
    // Searches have no filter for these.
    runs.push(...page.runs.filter((run) => isWanted(run, { ...filters, archived: "shown" })));
    after = page.next;
    isIndexing ||= page.indexing === true;
    if (after === undefined || runs.length >= limit) break;
  }
  return { runs: runs.slice(0, limit), isFull: after !== undefined || runs.length > limit, isIndexing };
}
