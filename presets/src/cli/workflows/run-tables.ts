import { RUN_STATUSES } from "@portico/plugins/workflow-service/run-state";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { table } from "../terminal/table.ts";
import { durationText } from "./run-lines.ts";
import type { RunSummary, WorkflowSummary } from "./running-service.ts";

const LIMIT = "20";

export function workflowTable(workflows: readonly WorkflowSummary[]): string {
  return table(
    ["WORKFLOW ID", "NAME", "NODES", "LAST RUN", "STATUS"],
    workflows.map(({ id, name, nodeCount, lastRun }) => [
      ...[id, name, String(nodeCount)],
      ...[lastRun?.runId ?? "", lastRun?.status ?? ""],
    ]),
  );
}

export function runTable(runs: readonly RunSummary[]): string {
  return table(
    ["RUN ID", "STATUS", "STARTED", "DURATION", "NODES"],
    runs.map(({ runId, status, startedAt, totalDurationMs, completedNodeCount, nodeCount }) => [
      ...[runId, status, startedAt],
      totalDurationMs === undefined ? "" : durationText(totalDurationMs),
      `${completedNodeCount}/${nodeCount}`,
    ]),
  );
}

/** Which runs a command line asks for. Throws CommandFailed (64). */
export function readRunFilter({
  status,
  limit = LIMIT,
}: {
  readonly status?: string | undefined;
  readonly limit?: string | undefined;
}): { isWanted(run: RunSummary): boolean; readonly limit: number } {
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CommandFailed("Option --limit is a number from 1 on", EXIT.usage);
  if (status !== undefined && !RUN_STATUSES.some((known) => known === status))
    throw new CommandFailed(`Option --status is one of ${RUN_STATUSES.join(", ")}`, EXIT.usage);
  return { isWanted: (run) => status === undefined || run.status === status, limit: Number(limit) };
}
