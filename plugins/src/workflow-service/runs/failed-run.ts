import type { ports } from "@portico/core";
import type { RunRecord } from "./run-record.ts";

/**
 * The writes that tell the operators of a run that failed. Only a person continues an interrupted run, so it counts as failed. A run that a node
 * started is not told: its parent decides.
 */
export function failedRunWrites(run: RunRecord, notifications: ports.Notifications): readonly ports.Write[] {
  const { runId, workflowId, name, status, error, schedule, parent } = run;
  if (parent || (status !== "failed" && status !== "interrupted")) return [];
  return notifications.writes("run.failed", {
    id: runId,
    data: {
      ...{ service: "workflow", workflowId, workflowName: name, runId, status },
      ...(schedule && { schedule: schedule.name }),
      ...(error && { code: error.code }),
      ...(error?.nodeId !== undefined && { nodeId: error.nodeId }),
    },
    page: ["workflows", workflowId, runId],
  });
}
