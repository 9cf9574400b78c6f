// Run this after a change of a contract, setting, command, metric, log field or exit code: `npm run docs:reference`.
import { mkdirSync, writeFileSync } from "node:fs";
import { auditReference } from "./reference/audit-actions.ts";
import { callsOf, errorsOfEveryCall } from "./reference/calls.ts";
import { agentKeys, definitionKeys } from "./reference/document-keys.ts";
import { commandReference } from "./reference/command-line.ts";
import { eventReference } from "./reference/events.ts";
import { exitCodeReference } from "./reference/exit-codes.ts";
import { failureCodes } from "./reference/failure-codes.ts";
import { logReference } from "./reference/log-lines.ts";
import { portReference } from "./reference/port-interfaces.ts";
import { metricReference } from "./reference/metrics.ts";
import { reasonReference } from "./reference/reasons.ts";
import { settingsReference } from "./reference/settings.ts";
import { code } from "./reference/table.ts";
import { workflowNodeReference } from "./workflows.ts";

interface ReferencePage {
  readonly title: string;
  /** What the page lists, in one sentence. */
  readonly lists: string;
  /** Links to the pages that explain it. */
  readonly explained: string;
  readonly write: () => string | Promise<string>;
}

const CALLS =
  "A `?` marks what may be left out. Every call can also fail with the [errors of the service](#errors-of-every-call). Which reads refuse unknown parameters: [parameters of reads](../api.md#parameters-of-reads).";

/** The pages of `docs/reference`, by file name. */
const PAGES: Readonly<Record<string, ReferencePage>> = {
  "agent-service": {
    title: "Agent service: calls, errors and limits",
    lists: "All calls of the agent service",
    explained:
      "[Conversations and runs](../areas/conversations-runs.md), [attachments and media](../areas/attachments-media.md), [webhooks](../areas/agent-webhook.md), [API](../api.md)",
    write: () => surfacePage("agent"),
  },
  "workflow-service": {
    title: "Workflow service: calls, errors and limits",
    lists: "All calls of the workflow service",
    explained: "[Workflow service](../areas/workflow-service.md), [API](../api.md)",
    write: () => surfacePage("workflow"),
  },
  "model-proxy": {
    title: "Model proxy: calls, errors and limits",
    lists: "All calls of the model proxy",
    explained: "[Model proxy](../areas/model-proxy.md)",
    write: () => surfacePage("proxy"),
  },
  events: {
    title: "Events",
    lists: "All events of the realtime channel and of event streams",
    explained: "[API](../api.md#events)",
    write: eventReference,
  },
  configuration: {
    title: "Configuration keys",
    lists: "All keys of the configuration, with their environment variables",
    explained: "[Configuration](../configuration.md)",
    write: settingsReference,
  },
  "command-line": {
    title: "Command line",
    lists: "All commands of `portico`",
    explained: "[Operations](../operations.md)",
    write: commandReference,
  },
  "agent-file": {
    title: "Keys of `agent.json`",
    lists: "All keys of an agent's file",
    explained: "[Agents](../areas/conversations-runs.md#agents), [schedules](../schedules.md)",
    write: agentKeys,
  },
  "workflow-definition": {
    title: "Keys of workflow definitions",
    lists: "All keys of a workflow definition and of its nodes",
    explained: "[Workflow definitions](../workflow-definitions.md), [schedules](../schedules.md#schedules-of-workflows)",
    write: definitionKeys,
  },
  "workflow-nodes": {
    title: "Kinds of workflow nodes",
    lists: "All kinds of nodes that a workflow definition can use, with their fields",
    explained:
      "[Workflow definitions](../workflow-definitions.md#nodes), [outputs and errors](../ports/workflow-nodes.md#adapters)",
    write: async () => (await workflowNodeReference()).replaceAll(/^### /gm, "## "),
  },
  "exit-codes": {
    title: "Exit codes",
    lists: "All exit codes of `portico`",
    explained: "[Operations](../operations.md#exit-codes)",
    write: exitCodeReference,
  },
  "log-lines": {
    title: "Fields of log lines",
    lists: "All fields of a log line in the format `json`",
    explained: "[Observability](../observability.md#log-lines)",
    write: logReference,
  },
  metrics: {
    title: "Metrics",
    lists: "All metrics of a process",
    explained: "[Observability](../observability.md#metrics), [what to monitor](../operations.md#what-to-monitor)",
    write: metricReference,
  },
  ports: {
    title: "Ports: functions and their rules",
    lists: "All functions of the ports, with the rules that their doc comments say",
    explained: "[Ports](../ports/README.md)",
    write: portReference,
  },
  reasons: {
    title: "Reasons and failure codes",
    lists: "All reasons for which turns are interrupted or completed, and codes with which turns, workflow runs and nodes fail",
    explained:
      "[Conversations and runs](../areas/conversations-runs.md#submit-and-watch), [run states](../areas/workflow-service.md#run-states), [nodes](../ports/workflow-nodes.md#adapters)",
    write: () => `${reasonReference()}\n\n${failureCodes()}`,
  },
  "audit-actions": {
    title: "Actions of the audit",
    lists: "All actions that the audit records",
    explained: "[Audit](../operations.md#audit)",
    write: auditReference,
  },
};

async function surfacePage(surface: string): Promise<string> {
  return [CALLS, await callsOf(surface), "## Errors of every call", errorsOfEveryCall()].join("\n\n");
}

/** The texts of all pages of `docs/reference`, by file name. */
export async function referencePages(): Promise<ReadonlyMap<string, string>> {
  const texts = await Promise.all(
    Object.entries(PAGES).map(async ([name, { title, lists, explained, write }]) => {
      const head = `${lists}. Explained in: ${explained}.\n\nThis page is generated from the code by ${code("npm run docs:reference")}. Do not edit it.`;
      return [`${name}.md`, `# ${title}\n\n${head}\n\n${await write()}\n`] as const;
    }),
  );
  const list = Object.entries(PAGES).map(
    ([name, { title, lists }]) => `- [${title}](${name}.md): ${lists.replace(/^All/, "all")}.`,
  );
  const others = ["- [Vendors](../vendors.md): what is known of model vendors."];
  const index = `# Reference\n\nThese pages are generated from the code by ${code("npm run docs:reference")}. A test compares them with it.\n\n${[...list, ...others].join("\n")}\n`;
  return new Map([["README.md", index], ...texts]);
}

if (import.meta.main) {
  const folder = new URL("../../docs/reference/", import.meta.url);
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of await referencePages()) writeFileSync(new URL(name, folder), text);
}
