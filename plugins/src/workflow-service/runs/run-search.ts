import { hash } from "node:crypto";
import { createTagIndex, type ports, type Tagged, type TagIndex, wordsOf } from "@portico/core";
import type { FieldValues, RunFields, RunRecord } from "./run-record.ts";
import { type RunStatus, isTerminal } from "../contracts/run-state.ts";
import { RUN_ERROR_WORDS } from "../contracts/limits.ts";

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

/** The tags by which a run is found. */
export function taggedRun(run: RunRecord): Tagged {
  const { runId: id, workflowId: owner, startedAt: at, status, fields } = run;
  const listed = statusTag(status);
  return {
    ...{ id, owner, at },
    tags: [
      ...(listed === undefined ? [] : [listed]),
      ...(isTerminal(status) ? [] : scheduleTags(run)),
      ...wordsOfError(run).map(wordTag),
      ...fieldTags("parameters", fields?.parameters),
      ...fieldTags("outputs", fields?.outputs),
    ],
  };
}

/** The index of runs by their statuses, the words of their errors, and their declared fields. The owner of a run is its workflow. */
export const openRunTags = (records: ports.Records): TagIndex => createTagIndex(records, "workflow-run-tags");

/** The tag of the open runs of a schedule. Runs that were started by hand do not have it. */
export const scheduleTag = (name: string): string => `c:${name}`;

function hasAll(values: FieldValues = {}, wanted: FieldValues = {}): boolean {
  return Object.entries(wanted).every(([name, value]) => Object.hasOwn(values, name) && values[name] === value);
}

const OPEN = "s:open";

/** The tag of a status that has a list. Most runs are completed: the list of all runs shows them as well. */
function statusTag(status: RunStatus): string | undefined {
  if (!isTerminal(status)) return OPEN;
  return status === "completed" ? undefined : `s:${status}`;
}

const scheduleTags = ({ schedule }: RunRecord): readonly string[] =>
  schedule?.plannedAt === undefined ? [] : [scheduleTag(schedule.name)];

/** The tag of a word. */
const wordTag = (word: string): string => `w:${word}`;

/** The tag of a field with a value, which may be longer than a tag, and may contain spaces. */
const fieldTag = (kind: "parameters" | "outputs", name: string, value: string): string =>
  `f:${hash("sha256", JSON.stringify([kind, name, value]), "base64url").slice(0, 22)}`;

/** The tags of a run's fields. */
const fieldTags = (kind: "parameters" | "outputs", values: FieldValues = {}): readonly string[] =>
  Object.entries(values).map(([name, value]) => fieldTag(kind, name, value));

/** The words of a run's error. */
function wordsOfError({ error }: RunRecord): readonly string[] {
  return error ? wordsOf(`${error.code} ${error.nodeId ?? ""} ${error.message}`, RUN_ERROR_WORDS) : [];
}
