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
