import type { FieldValues, RunFields } from "./run-fields.ts";
import type { RunRecord } from "./run-record.ts";
import type { RunStatus } from "./run-state.ts";
import { fieldTags, statusTag, wordsOfError, wordTag } from "./run-tags.ts";

/** The criteria of a search for runs. All of them must match. */
export interface RunSearch {
  readonly workflowId?: string | undefined;
  readonly status?: RunStatus | undefined;
  readonly userId?: string | undefined;
  /** Begun at this time or later, and before that time (ISO 8601 in UTC, with milliseconds). */
  readonly from?: string | undefined;
  readonly before?: string | undefined;
  /** The hash of the definition. */
  readonly version?: string | undefined;
  /** Words of the error, in any order. */
  readonly words: readonly string[];
  readonly fields: RunFields;
}

/** The tags whose lists contain every run of a search. */
export function tagsOfSearch({ status, words, fields }: RunSearch): readonly string[] {
  const listed = status === undefined ? undefined : statusTag(status);
  return [
    ...(listed === undefined ? [] : [listed]),
    ...words.map(wordTag),
    ...fieldTags("parameters", fields.parameters),
    ...fieldTags("outputs", fields.outputs),
  ];
}

/** Whether a run matches as it is now: a list may be older than the run. */
export function isSought(run: RunRecord, search: RunSearch): boolean {
  const { workflowId, status, userId, from, before, version, words, fields } = search;
  if (userId !== undefined && run.userId !== userId) return false;
  if ((workflowId !== undefined && run.workflowId !== workflowId) || (status !== undefined && run.status !== status))
    return false;
  if ((from !== undefined && run.startedAt < from) || (before !== undefined && run.startedAt >= before)) return false;
  if (version !== undefined && run.definition !== version) return false;
  if (!hasAll(run.fields?.parameters, fields.parameters) || !hasAll(run.fields?.outputs, fields.outputs)) return false;
  if (words.length === 0) return true;
  const found = new Set(wordsOfError(run));
  return words.every((word) => found.has(word));
}

function hasAll(values: FieldValues = {}, wanted: FieldValues = {}): boolean {
  return Object.entries(wanted).every(([name, value]) => Object.hasOwn(values, name) && values[name] === value);
}

/**
 * What a search asks, as a text that is equal for equal searches. Without the oldest time: the pages of "the last hour" are the same search,
 * although each has another oldest time.
 */
export function askedOf({ words, fields, ...search }: RunSearch): string {
  const sorted = (values: FieldValues = {}) => Object.entries(values).sort(([one], [other]) => (one < other ? -1 : 1));
  const { workflowId, status, userId, before, version } = search;
  return JSON.stringify([
    ...[workflowId, status, userId, before, version],
    ...[[...words].sort(), sorted(fields.parameters), sorted(fields.outputs)],
  ]);
}
