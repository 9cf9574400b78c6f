import type { CallResult, Client } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";

/** What runs are found by: all of it at once. */
export interface RunSearch {
  /** 1-8 words of the title, or of the error of a failed run, in any order. */
  readonly words?: string | undefined;
  readonly status?: "running" | "idle" | "completed" | "failed" | undefined;
  /** How their last turn ended, or what it does now. */
  readonly outcome?: Run["outcome"] | undefined;
  /** The code of the error of their last turn, or the reason why it ended. */
  readonly reason?: string | undefined;
  /** Runs whose last turn ended at this time or later. */
  readonly endedFrom?: Date | undefined;
  /** Runs that began at this time or later, and before that time. */
  readonly from?: Date | undefined;
  readonly before?: Date | undefined;
  readonly agentId?: string | undefined;
  /** Only the owner finds other users' runs. */
  readonly userId?: string | undefined;
  /** Runs of background turns (`true`), or all others. */
  readonly background?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A run as the service shows it. */
export type Run = CallResult<(typeof conversationsRunsContract)["run"]>;

/** How many runs a search finds. */
export type RunCounts = CallResult<(typeof conversationsRunsContract)["countRuns"]>;

type Calls = Client<typeof conversationsRunsContract>;

const PAGE = "50";

/** Reads page after page, also pages that are empty and have a next one. */
export async function* findRuns(calls: Pick<Calls, "searchRuns">, search: RunSearch): AsyncGenerator<Run, void> {
  const query = { limit: PAGE, ...criteriaOf(search) };
  let after: string | undefined;
  do {
    const page = await calls.searchRuns({
      query: { ...query, ...(after !== undefined && { after }) },
      ...(search.signal && { signal: search.signal }),
    });
    yield* page.runs;
    after = page.next;
  } while (after !== undefined);
}

/** Counts the runs that a search finds. */
export function countRuns(calls: Pick<Calls, "countRuns">, search: RunSearch): Promise<RunCounts> {
  return calls.countRuns({ query: criteriaOf(search), ...(search.signal && { signal: search.signal }) });
}

/** The parameters of the query. */
function criteriaOf(search: RunSearch) {
  const { words, status, outcome, reason, endedFrom, from, before, agentId, userId, background } = search;
  return {
    ...(words !== undefined && { q: words }),
    ...(status !== undefined && { status }),
    ...(outcome !== undefined && { outcome }),
    ...(reason !== undefined && { reason }),
    ...(endedFrom !== undefined && { ended_from: endedFrom.toISOString() }),
    ...(from !== undefined && { started_from: from.toISOString() }),
    ...(before !== undefined && { started_before: before.toISOString() }),
    ...(agentId !== undefined && { agent_id: agentId }),
    ...(userId !== undefined && { user_id: userId }),
    ...(background !== undefined && { background: String(background) }),
  };
}
