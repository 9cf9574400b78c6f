import { hash } from "node:crypto";
import { createTagIndex, type ports, type Tagged, type TagIndex, wordsOf } from "@portico/core";
import { RUN_ERROR_WORDS } from "../limits.ts";
import type { FieldValues } from "./run-fields.ts";
import type { RunRecord } from "./run-record.ts";
import { isTerminal, type RunStatus } from "./run-state.ts";

/** The index of runs by their statuses, the words of their errors, and their declared fields. The owner of a run is its workflow. */
export const openRunTags = (records: ports.Records): TagIndex => createTagIndex(records, "workflow-run-tags");

const OPEN = "s:open";

/** The tag of a status that has a list. Most runs are completed: the list of all runs shows them as well. */
export function statusTag(status: RunStatus): string | undefined {
  if (!isTerminal(status)) return OPEN;
  return status === "completed" ? undefined : `s:${status}`;
}

/** The tag of the open runs of a schedule. Runs that were started by hand do not have it. */
export const scheduleTag = (name: string): string => `c:${name}`;

const scheduleTags = ({ schedule }: RunRecord): readonly string[] =>
  schedule?.plannedAt === undefined ? [] : [scheduleTag(schedule.name)];

/** The tag of a word. */
export const wordTag = (word: string): string => `w:${word}`;

/** The tag of a field with a value, which may be longer than a tag, and may contain spaces. */
export const fieldTag = (kind: "parameters" | "outputs", name: string, value: string): string =>
  `f:${hash("sha256", JSON.stringify([kind, name, value]), "base64url").slice(0, 22)}`;

/** The tags of a run's fields. */
export const fieldTags = (kind: "parameters" | "outputs", values: FieldValues = {}): readonly string[] =>
  Object.entries(values).map(([name, value]) => fieldTag(kind, name, value));

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

/** The words of a run's error. */
export function wordsOfError({ error }: RunRecord): readonly string[] {
  return error ? wordsOf(`${error.code} ${error.nodeId ?? ""} ${error.message}`, RUN_ERROR_WORDS) : [];
}
