import { RUN_STATUSES } from "@portico/plugins/workflow-service/contract";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printable } from "../terminal/printable.ts";
import { table } from "../terminal/table.ts";
import { durationText } from "./run-lines.ts";
import type { Deployed, RunSummary, WorkflowSummary } from "./running-service.ts";

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

/** One line for each unusable file. */
export function brokenLines(broken: Deployed["broken"]): string {
  return broken
    .map(({ dslPath, problemCount, problems }) => {
      const [first] = problems;
      const place = first ? `:${first.line}:${first.column}: ${first.message}` : ":";
      return printable(
        `${dslPath}${place} (${problemCount === 1 ? "the file is not used" : `${problemCount} problems; the file is not used`})`,
      );
    })
    .join("\n");
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

/** The filter for runs, from the command line. Throws CommandFailed (64). */
export function readRunFilter({
  status,
  limit = LIMIT,
}: {
  readonly status?: string | undefined;
  readonly limit?: string | undefined;
}): { isWanted(run: RunSummary): boolean; readonly limit: number } {
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CommandFailed("Option --limit must be a number, at least 1", EXIT.usage);
  if (status !== undefined && !RUN_STATUSES.some((known) => known === status))
    throw new CommandFailed(`Option --status must be one of ${RUN_STATUSES.join(", ")}`, EXIT.usage);
  return { isWanted: (run) => status === undefined || run.status === status, limit: Number(limit) };
}
