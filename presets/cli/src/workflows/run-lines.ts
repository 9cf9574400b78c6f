import prettyMilliseconds from "pretty-ms";
import { printable, printableJson, shellWord, table } from "../terminal.ts";
import type {
  DefinitionVersion,
  Deployed,
  FoundRun,
  ResumePlan,
  RunDetail,
  RunEvent,
  WaitingGate,
  WorkflowSummary,
} from "./running-service.ts";

type Gate = NonNullable<RunDetail["humanGate"]>;

/** The events of a run as lines for a person. `more`: flags with which another command reaches the same service. */
export function runLines({ event, data }: RunEvent, more: readonly string[]): string[] {
  switch (event) {
    case "workflow:started":
      return [`Run ${data.runId} of ${data.workflowId}: ${printable(data.name)}, ${data.nodeCount} nodes`];
    case "workflow:node_start":
      return [told("started", data.nodeId, data.name === undefined ? data.type : `${data.type}: ${data.name}`)];
    case "workflow:node_complete":
      return [told("completed", data.nodeId, durationText(data.durationMs))];
    case "workflow:node_error":
      return [told("failed", data.nodeId, errorText(data.error))];
    case "workflow:human_gate":
      return [told("waiting", data.nodeId, gateText(data)), ...decisionLines(data, data.runId, more).map(indented)];
    case "workflow:callback":
      return [told("waiting", data.nodeId, `for an event, until ${data.expiresAt}`)];
    case "workflow:gate_notification":
      return [told(data.status === "sent" ? "notified" : "unsent", data.nodeId, data.error ? errorText(data.error) : "")];
    case "workflow:error":
      return [`Error: ${errorText(data.error)}${data.nodeId === undefined ? "" : ` (node ${printable(data.nodeId)})`}`];
    case "workflow:complete":
      return [
        `The run ${endings[data.status] ?? `is ${data.status}`}.`,
        ...(data.finalOutputs === undefined ? [] : [printableJson(data.finalOutputs, 2)]),
      ];
  }
}

/** The question of a gate. */
function gateText({ title, message }: Gate): string {
  return printable(message === "" ? title : `${title}: ${message}`);
}

/** The commands that decide a gate. */
function decisionLines({ nodeId, form }: Gate, runId: string, more: readonly string[]): string[] {
  const about = [shellWord(runId), "--node", shellWord(nodeId), ...more].join(" ");
  const fields = Object.keys((form?.["properties"] ?? {}) as object).map((name) => `${JSON.stringify(name)}: …`);
  const values = form === undefined ? "" : ` --values ${shellWord(`{ ${fields.join(", ") || "…"} }`)}`;
  return [`portico workflow approve ${about}${printable(values)}`, `portico workflow reject ${about}`];
}

function errorText({ code, message }: { readonly code: string; readonly message: string }): string {
  return printable(`${code}: ${message}`);
}

function durationText(ms: number): string {
  return prettyMilliseconds(ms);
}

const endings: Readonly<Record<string, string>> = {
  completed: "has completed",
  failed: "has failed",
  cancelled: "was cancelled",
  interrupted: "was interrupted",
};

function indented(line: string): string {
  return `${" ".repeat(13)}${line}`;
}

function told(what: string, nodeId: string, more: string): string {
  return `  ${what.padEnd(9)}  ${printable(nodeId)}  ${printable(more)}`.trimEnd();
}

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
    runs.map(({ runId, workflowId, status, queued, startedAt, totalDurationMs, completedNodeCount, nodeCount }) => [
      ...[runId, ...(isOfAll ? [workflowId] : []), statusText({ status, queued }), startedAt],
      totalDurationMs === undefined ? "" : durationText(totalDurationMs),
      `${completedNodeCount}/${nodeCount}`,
    ]),
  );
}

function statusText({ status, queued }: Pick<FoundRun, "status" | "queued">): string {
  return queued ? `${status}, queued` : status;
}

/** Enough of a hash to distinguish the versions of one definition. */
const HASH_CHARACTERS = 12;
const SIGNS = { added: "+", removed: "-", changed: "~" } as const;

/** The versions for a person: one line for each, followed by what changed since the version before. */
export function versionLines(versions: readonly DefinitionVersion[]): string {
  return versions.flatMap(linesOf).map(printable).join("\n");
}

function linesOf(each: DefinitionVersion): string[] {
  const { version, isDeployed, runCount, firstUsedAt, lastUsedAt, changes = [], changeCount = 0 } = each;
  const runs = runCount === 1 ? "1 run" : `${runCount} runs`;
  const used = firstUsedAt === undefined ? "" : `, ${firstUsedAt} to ${lastUsedAt}`;
  const more = changeCount - changes.length;
  return [
    `${version.slice(0, HASH_CHARACTERS)}  ${runs}${used}${isDeployed ? ", deployed" : ""}`,
    ...changes.map(({ path, change }) => `    ${SIGNS[change]} ${path}`),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ];
}

/** What a resume would do, for a person: one line for each kind of node that there is. */
export function planLines({ version, kept, repeated, changed, added, removed, done }: ResumePlan): string {
  const lines: [string, readonly string[]][] = [
    ["Kept", kept],
    ["Repeated", repeated],
    ["Done", done === undefined ? [] : [done]],
    ["Changed", changed],
    ["Added", added],
    ["Removed", removed],
    ["Version", [version]],
  ];
  return lines
    .filter(([, ids]) => ids.length > 0)
    .map(([word, ids]) => printable(`${`${word}:`.padEnd(11)}${ids.join(", ")}`))
    .join("\n");
}

/** A gate that waits, as text for a person. `more`: flags with which another command reaches the same service. */
export function gateLines({ workflowId, runId, userId, gate }: WaitingGate, more: readonly string[]): string {
  const { nodeId, requestedAt, expiresAt } = gate;
  const facts: readonly (readonly [string, string])[] = [
    ["Workflow", `${workflowId}${userId === undefined ? "" : `, for ${userId}`}`],
    ["Run", runId],
    ["Node", nodeId],
    ["Asked", `${requestedAt}${expiresAt === undefined ? "" : `, until ${expiresAt}`}`],
  ];
  return [
    gateText(gate),
    ...facts.map(([name, value]) => `  ${`${name}:`.padEnd(10)} ${printable(value)}`),
    ...decisionLines(gate, runId, more).map((line) => `  ${line}`),
  ].join("\n");
}

/** A run, as text for a person. `more`: flags with which another command reaches the same service. */
export function runPage(detail: RunDetail, more: readonly string[]): string {
  const { runId, humanGate, finalOutputs, nodeResults = {} } = detail;
  const nodes = Object.entries(nodeResults).map(([nodeId, { type, status, attempts, durationMs, error, waitsUntil }]) => [
    ...[nodeId, type, waitsUntil === undefined ? status : `${status} until ${waitsUntil}`, String(attempts)],
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
    ["Status", statusText(detail)],
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
