import { createHash } from "node:crypto";
import type { ports } from "@portico/core";

const PREFIX = "wrun_";
const TIME_CHARACTERS = 9;

/** An id for a run that begins `at` (milliseconds since 1970): those of about the same time stand together in the stores, which have less to write. */
export function newRunId(ids: ports.Ids, at: number): string {
  return ids.id(firstRunId(at));
}

/** Below the ids of all runs that begin `at` or later, and of those that they start; above all others. */
export function firstRunId(at: number): string {
  return `${PREFIX}${at.toString(36).padStart(TIME_CHARACTERS, "0")}`;
}

/** The id of the run that a schedule starts at a planned time, in milliseconds since 1970: the same in all processes, and after a crash. */
export function scheduledRunId(workflowId: string, schedule: string, plannedAt: number): string {
  const digest = createHash("sha256").update(`schedule ${workflowId} ${schedule} ${plannedAt}`).digest("base64url");
  return `${firstRunId(plannedAt)}${digest.replace(/[-_]/g, "").slice(0, 24)}`;
}

/** The id of the run that an attempt of a node starts: the same after a crash, so that nothing is started twice. It stands beside its parent. */
export function childRunId(parentId: string, nodeId: string, attempt: number): string {
  const digest = createHash("sha256").update(`${parentId} ${nodeId} ${attempt}`).digest("base64url");
  return `${parentId.slice(0, PREFIX.length + TIME_CHARACTERS)}${digest.replace(/[-_]/g, "").slice(0, 24)}`;
}

/** Names in the engine are at most 512 characters; node ids can be longer inside `map` and `loop`. */
const ID_CHARACTERS = 400;

/** A name for what a node does with the engine, of which there is one in a run: a step, a wait, a signal. */
export function workName(nodeId: string, what: string): string {
  const id = nodeId.length > ID_CHARACTERS ? createHash("sha256").update(nodeId).digest("hex") : nodeId;
  return `${id} ${what}`;
}

/** The keys by which runs are found. */
export interface RunKey {
  readonly workflowId: string;
  readonly bindingId?: string | undefined;
  /** ISO 8601. */
  readonly startedAt: string;
  /** The hash of the run's definition. */
  readonly definition: string;
}

/** How the keys of all runs are ordered. */
export const RUN_LIST: Readonly<Record<string, readonly string[]>> = {
  by_workflow: ["workflowId", "startedAt"],
  by_start: ["startedAt"],
  by_definition: ["definition", "startedAt"],
};
