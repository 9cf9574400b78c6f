import { printable } from "../terminal/printable.ts";
import { table } from "../terminal/table.ts";
import { durationText } from "./run-lines.ts";
import type { Deployed, FoundRun, WorkflowSummary } from "./running-service.ts";

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

/** `isOfAll`: of several workflows. */
export function runTable(runs: readonly FoundRun[], { isOfAll }: { readonly isOfAll: boolean }): string {
  return table(
    ["RUN ID", ...(isOfAll ? ["WORKFLOW"] : []), "STATUS", "STARTED", "DURATION", "NODES"],
    runs.map(({ runId, workflowId, status, startedAt, totalDurationMs, completedNodeCount, nodeCount }) => [
      ...[runId, ...(isOfAll ? [workflowId] : []), status, startedAt],
      totalDurationMs === undefined ? "" : durationText(totalDurationMs),
      `${completedNodeCount}/${nodeCount}`,
    ]),
  );
}
