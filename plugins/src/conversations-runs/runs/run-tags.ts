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

/** The tags by which a run is found. A cleared run is in no list. `words` are those of the run, if they are known. */
export function taggedRun(run: Run, words = wordsOfRun(run)): Tagged {
  const { run_id: id, user_id: owner, started_at: at, status, cleared } = run;
  if (cleared) return { id, owner, at, tags: [] };
  const listed = statusTag(status);
  return { id, owner, at, tags: [...(listed === undefined ? [] : [listed]), ...words.map(wordTag)] };
}

/** The tags of a run before and after a change. Most changes keep the texts, which are then read once. */
export function taggedChange(before: Run, after: Run): readonly [Tagged, Tagged] {
  const words = wordsOfRun(after);
  const isSameText =
    before.title === after.title &&
    before.failure_reason === after.failure_reason &&
    before.failure?.code === after.failure?.code &&
    before.failure?.message === after.failure?.message;
  return [taggedRun(before, isSameText ? words : undefined), taggedRun(after, words)];
}

/** The words of a run's title, and of the reason why it failed. */
export function wordsOfRun({ title = "", failure, failure_reason: reason = "" }: Run): readonly string[] {
  const words = [...wordsOf(title, RUN_TITLE_WORDS)];
  if (failure || reason) words.push(...wordsOf(`${reason} ${failure?.code ?? ""} ${failure?.message ?? ""}`, RUN_ERROR_WORDS));
  return [...new Set(words)];
}
