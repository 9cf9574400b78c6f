import type { Client } from "@portico/core/client";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import type { FoundRun, RunQuery } from "./workflow-calls.ts";

/** Calls for one page. Each looks at a bounded number of runs. */
const MOST_CALLS = 10;
const PAGE = 50;

/** Runs of a search, newest first, and the place behind them. */
export interface RunPageFound {
  readonly runs: readonly FoundRun[];
  readonly query: RunQuery;
  readonly next: string | undefined;
  /** The service still indexes runs of an earlier version. */
  readonly isIndexing: boolean;
}

/** One page of runs. It has fewer runs than a full page, or none, only at the end or if few runs match. */
export async function findRuns(
  calls: Pick<Client<typeof workflowServiceContract>, "searchRuns">,
  query: RunQuery,
  { after, signal }: { readonly after?: string | undefined; readonly signal: AbortSignal },
): Promise<RunPageFound> {
  const runs: FoundRun[] = [];
  let [next, isIndexing] = [after, false];
  for (let call = 0; call < MOST_CALLS; call++) {
    const limit = String(PAGE - runs.length);
    const page = await calls.searchRuns({ query: { ...query, limit, ...(next !== undefined && { cursor: next }) }, signal });
    runs.push(...page.runs);
    next = page.next;
    isIndexing ||= page.indexing === true;
    if (next === undefined || runs.length >= PAGE) break;
  }
  return { runs, query, next, isIndexing };
}

/** The runs that were shown before and come behind a newer page: runs that a new page has pushed out stay. */
export function runsBehind(page: readonly FoundRun[], shown: readonly FoundRun[]): readonly FoundRun[] {
  const last = page.at(-1);
  if (!last) return [];
  const known = new Set(page.map(({ runId }) => runId));
  return shown.filter(({ runId, startedAt }) => !known.has(runId) && startedAt <= last.startedAt);
}
