import { printable, printableJson } from "../terminal/printable.ts";
import { table } from "../terminal/table.ts";
import { decisionLines, durationText, errorText, gateText } from "./run-lines.ts";
import type { RunDetail } from "./running-service.ts";

/** A run, as text for a person. `more`: flags with which another command reaches the same service. */
export function runPage(detail: RunDetail, more: readonly string[]): string {
  const { runId, humanGate, finalOutputs, nodeResults = {} } = detail;
  const nodes = Object.entries(nodeResults).map(([nodeId, { type, status, attempts, durationMs, error }]) => [
    ...[nodeId, type, status, String(attempts)],
    durationMs === undefined ? "" : durationText(durationMs),
    error ? errorText(error) : "",
  ]);
  return [
    ...headOf(detail).map(([name, value]) => `${`${name}:`.padEnd(11)}${printable(value)}`),
    ...(nodes.length === 0 ? [] : ["", table(["NODE", "TYPE", "STATUS", "ATTEMPTS", "DURATION", "ERROR"], nodes)]),
    ...(humanGate ? ["", ...waitingLines(humanGate)] : []),
    ...(finalOutputs === undefined ? [] : ["", "Outputs:", printableJson(finalOutputs, 2)]),
  ].join("\n");

  function waitingLines(gate: NonNullable<typeof humanGate>): string[] {
    const decisions = decisionLines(gate, runId, more).map((line) => `  ${line}`);
    return [`Waiting at ${printable(gate.nodeId)}: ${gateText(gate)}`, ...decisions];
  }
}

function headOf(detail: RunDetail): [string, string][] {
  const { completedAt, totalDurationMs, error, userId, parentRunId, workflowBindingId } = detail;
  const { resumes, resumedBy, resumable, parameters } = detail;
  const ended = completedAt && `${completedAt}${totalDurationMs === undefined ? "" : `, after ${durationText(totalDurationMs)}`}`;
  const rows: [string, string | undefined][] = [
    ["Run", detail.runId],
    ["Workflow", detail.workflowId],
    ["Status", detail.status],
    ["Error", error && errorText(error) + (error.nodeId === undefined ? "" : ` (node ${error.nodeId})`)],
    ["Started", detail.startedAt],
    ["Ended", ended],
    ["User", userId],
    ["Binding", workflowBindingId],
    ["Parent", parentRunId],
    ["Resumes", resumes],
    ["Resumed by", resumedBy],
    ["Can resume", resumable && `portico workflow resume ${detail.runId}`],
    ["Parameters", parameters === undefined ? undefined : printableJson(parameters)],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}
