import { createTagIndex, type ports, type Tagged, type TagIndex, wordsOf } from "@portico/core";
import { RUN_ERROR_WORDS, RUN_TITLE_WORDS } from "../limits.ts";
import type { RunStatus } from "./run-state.ts";
import type { Run } from "./run.ts";

/** Statuses that have a list. The others are those of most runs, which the list of all runs shows as well. */
const LISTED: readonly RunStatus[] = ["running", "failed"];

/** The index of runs by their words and statuses. */
export const openRunTags = (records: ports.Records): TagIndex => createTagIndex(records, "run-tags");

/** The tag of a word. */
export const wordTag = (word: string): string => `w:${word}`;

/** The tag of a status that has a list. */
export const statusTag = (status: RunStatus): string | undefined => (LISTED.includes(status) ? `s:${status}` : undefined);

/** The tags by which a run is found. A cleared run is in no list. */
export function taggedRun(run: Run): Tagged {
  const { run_id: id, user_id: owner, started_at: at, status, cleared } = run;
  if (cleared) return { id, owner, at, tags: [] };
  const listed = statusTag(status);
  return { id, owner, at, tags: [...(listed === undefined ? [] : [listed]), ...wordsOfRun(run).map(wordTag)] };
}

/** The words of a run's title, and of the reason why it failed. */
export function wordsOfRun({ title = "", failure, failure_reason: reason = "" }: Run): readonly string[] {
  const words = [...wordsOf(title, RUN_TITLE_WORDS)];
  if (failure || reason) words.push(...wordsOf(`${reason} ${failure?.code ?? ""} ${failure?.message ?? ""}`, RUN_ERROR_WORDS));
  return [...new Set(words)];
}
