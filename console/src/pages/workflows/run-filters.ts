import type { Filter, ListAddress, ListColumn } from "../../blocks/list/list-address.svelte.ts";
import { readRange, TIME_FILTERS } from "../../blocks/list/time-range.ts";
import { RUN_WORDS } from "./status-words.ts";
import type { RunQuery, RunStatus } from "./workflow-calls.ts";

/** `name=value`, as searches take fields. */
export const FIELD = /^[A-Za-z_][^=]*=/;
const field = (value: string) => (FIELD.test(value) ? value : undefined);

export const STATUSES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(RUN_WORDS).map(([id, { text }]) => [id, text]),
);

/** The filters in the address: `#/workflows/triage?status=failed&since=1d`. */
export const RUN_FILTERS: readonly Filter[] = [
  { name: "workflow", title: "Workflow" },
  { name: "status", title: "Status", describe: (value) => (Object.hasOwn(STATUSES, value) ? STATUSES[value] : undefined) },
  ...TIME_FILTERS,
  { name: "q", title: "Words" },
  { name: "user", title: "User" },
  { name: "parameter", title: "Parameter", isList: true, describe: field },
  { name: "output", title: "Output", isList: true, describe: field },
  { name: "version", title: "Version", describe: (value) => (/^[0-9a-f]{64}$/.test(value) ? value.slice(0, 12) : undefined) },
];

/** The filters behind "More filters". */
export const MORE_FILTERS = ["user", "parameter", "output", "version"] as const;

export const RUN_COLUMNS = [
  { id: "run", title: "Run", isShown: "always" },
  { id: "workflow", title: "Workflow", isShown: "unless" },
  { id: "status", title: "Status", isShown: "unless" },
  { id: "user", title: "User", isShown: "if" },
  { id: "parameters", title: "Parameters", isShown: "if" },
  { id: "outputs", title: "Outputs", isShown: "if" },
  { id: "nodes", title: "Nodes", align: "end", isShown: "unless" },
  { id: "duration", title: "Duration", align: "end", isShown: "unless" },
  { id: "tokens", title: "Tokens", align: "end", isShown: "if" },
  { id: "cost", title: "Cost", align: "end", isShown: "if" },
  { id: "started", title: "Started", isShown: "unless" },
  { id: "error", title: "Error", isShown: "unless" },
] as const satisfies readonly ListColumn[];

/** The query of a search. */
export function toQuery(address: ListAddress, workflowId: string | undefined): RunQuery {
  const value = (name: string) => address.value(name);
  const { from, until } = readRange(value);
  const workflow = workflowId ?? value("workflow");
  const [status, q, user, version] = [value("status"), value("q"), value("user"), value("version")];
  return {
    ...(workflow !== "" && { workflowId: workflow }),
    ...(status !== "" && { status: status as RunStatus }),
    ...(from !== undefined && { startedFrom: from }),
    ...(until !== undefined && { startedBefore: until }),
    ...(q !== "" && { q }),
    ...(user !== "" && { userId: user }),
    ...(version !== "" && { version }),
    parameter: [...address.values("parameter")],
    output: [...address.values("output")],
  };
}
