import prettyMilliseconds from "pretty-ms";
import { printable, printableJson } from "../terminal/printable.ts";
import { shellWord } from "../terminal/shell-word.ts";
import type { RunDetail, RunEvent } from "./running-service.ts";

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
export function gateText({ title, message }: Gate): string {
  return printable(message === "" ? title : `${title}: ${message}`);
}

/** The commands that decide a gate. */
export function decisionLines({ nodeId, form }: Gate, runId: string, more: readonly string[]): string[] {
  const about = [shellWord(runId), "--node", shellWord(nodeId), ...more].join(" ");
  const fields = Object.keys((form?.["properties"] ?? {}) as object).map((name) => `${JSON.stringify(name)}: …`);
  const values = form === undefined ? "" : ` --values ${shellWord(`{ ${fields.join(", ") || "…"} }`)}`;
  return [`portico workflow approve ${about}${printable(values)}`, `portico workflow reject ${about}`];
}

export function errorText({ code, message }: { readonly code: string; readonly message: string }): string {
  return printable(`${code}: ${message}`);
}

export function durationText(ms: number): string {
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
