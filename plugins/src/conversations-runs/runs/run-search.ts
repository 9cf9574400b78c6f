import type { RunStatus } from "./run-state.ts";
import { statusTag, wordsOfRun, wordTag } from "./run-tags.ts";
import type { Run } from "./run.ts";

/** The criteria of a search for runs. All of them must match. */
export interface RunSearch {
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly status?: RunStatus | undefined;
  /** Runs of background turns, or all others. */
  readonly isBackground?: boolean | undefined;
  /** Archived runs, or all others. */
  readonly isArchived?: boolean | undefined;
  /** Runs whose last turn was interrupted, or all others. */
  readonly isInterrupted?: boolean | undefined;
  /** Runs that this agent, or this run, delegated. */
  readonly delegatedBy?: string | undefined;
  readonly parentRunId?: string | undefined;
  /** Begun at this time or later, and before that time (ISO 8601 in UTC, with milliseconds). */
  readonly from?: string | undefined;
  readonly before?: string | undefined;
  /** Words of the title or of the error, in any order. */
  readonly words: readonly string[];
}

/** The tags whose lists contain every run of a search. */
export function tagsOfSearch({ status, words }: RunSearch): readonly string[] {
  const listed = status === undefined ? undefined : statusTag(status);
  return [...(listed === undefined ? [] : [listed]), ...words.map(wordTag)];
}

/** Whether a run matches as it is now: a list may be older than the run. */
export function isSought(run: Run, search: RunSearch): boolean {
  const { userId, agentId, status, isBackground, isArchived, isInterrupted, delegatedBy, parentRunId } = search;
  const { from, before, words } = search;
  if (run.cleared || (userId !== undefined && run.user_id !== userId)) return false;
  if ((agentId !== undefined && run.agent_id !== agentId) || (status !== undefined && run.status !== status)) return false;
  if (isBackground !== undefined && (run.background ?? false) !== isBackground) return false;
  if (isArchived !== undefined && (run.archived_at !== undefined) !== isArchived) return false;
  if (isInterrupted !== undefined && (run.interruption_reason !== undefined) !== isInterrupted) return false;
  if (delegatedBy !== undefined && run.delegation?.fromAgentId !== delegatedBy) return false;
  if (parentRunId !== undefined && run.delegation?.parentRunId !== parentRunId) return false;
  if ((from !== undefined && run.started_at < from) || (before !== undefined && run.started_at >= before)) return false;
  if (words.length === 0) return true;
  const found = new Set(wordsOfRun(run));
  return words.every((word) => found.has(word));
}

/**
 * What a search asks, as a text that is equal for equal searches. Without the oldest time: the pages of "the last hour" are the same search,
 * although each has another oldest time.
 */
export function askedOf({ from: _from, words, ...search }: RunSearch): string {
  const given = Object.entries({ ...search, words: [...words].sort() }).filter(([, value]) => value !== undefined);
  return JSON.stringify(given.sort(([one], [other]) => (one < other ? -1 : 1)));
}
