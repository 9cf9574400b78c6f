import { RUN_SEARCH } from "@portico/core/contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import {
  choiceFilter,
  endedFilter,
  FIELD,
  type RunColumn,
  type RunFilter,
  timeFilters,
  workColumns,
} from "../../blocks/runs/run-list.ts";
import { routeTo } from "../../shell/route.svelte.ts";
import { hasEnded, RUN_WORDS, runWords } from "./status-words.ts";
import type { FoundRun, SearchFields } from "./workflow-calls.ts";

/** Parameters of a search that have a filter below, and those of its pages. All others have a text. */
const KNOWN =
  "workflowId status startedFrom startedBefore endedFrom error node q userId parameter output version limit cursor before".split(
    " ",
  );
const others: readonly RunFilter[] = Object.keys(workflowServiceContract.searchRuns.query.entries)
  .filter((name) => !KNOWN.includes(name))
  .map((name) => ({ name, title: titleOf(name), isMore: true }));

/** `taskId` is `Task id`. */
function titleOf(name: string): string {
  const words = name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

interface Listed {
  /** Undefined: the runs of all workflows. */
  readonly workflowId: string | undefined;
  /** Names of all workflows, by ID. */
  readonly names: Readonly<Record<string, string>>;
  /** The fields by which the runs of the workflow can be found. */
  readonly search: SearchFields | undefined;
}

/** The filters in the address: `#/workflows/triage?status=failed&since=1d`. */
export function runFilters({ workflowId, names, search }: Listed): readonly RunFilter[] {
  const describe = (value: string) => (FIELD.test(value) ? value : undefined);
  const field = { control: "fields", isList: true, isMore: true, describe } as const;
  return [
    ...(workflowId === undefined
      ? [{ name: "workflow", title: "Workflow", choices: names, ask: (value: string) => ({ workflowId: value }) }]
      : []),
    choiceFilter({
      ...{ name: "status", title: "Status" },
      choices: Object.fromEntries(Object.entries(RUN_WORDS).map(([id, { text }]) => [id, text])),
    }),
    ...timeFilters("startedFrom", "startedBefore"),
    { name: "q", title: "Words", label: "Words of the error", maxlength: RUN_SEARCH.characters },
    {
      ...{ name: "error", title: "Error", label: "Code of the error", placeholder: "Such as http_status", isMore: true },
      describe: (value) => (/^[\w.-]{1,100}$/.test(value) ? value : undefined),
    },
    { name: "node", title: "Node", label: "Node that failed", maxlength: 256, isMore: true },
    endedFilter("endedFrom"),
    { name: "user", title: "User", isMore: true, ask: (userId) => ({ userId }) },
    { name: "parameter", title: "Parameter", fields: search?.parameters, ...field },
    { name: "output", title: "Output", fields: search?.outputs, ...field },
    {
      ...{ name: "version", title: "Version", placeholder: "Hash of the definition", isMore: true },
      describe: (value) => (/^[0-9a-f]{64}$/.test(value) ? value.slice(0, 12) : undefined),
    },
    ...others,
  ];
}

/** The columns of the runs of one workflow, or of all. */
export function runColumns(workflowId: string | undefined): readonly RunColumn<FoundRun>[] {
  const textOf = (values: Readonly<Record<string, string>> = {}) =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${value}`)
      .join(", ");
  const fields = (values: Readonly<Record<string, string>> | undefined) => {
    const text = textOf(values);
    return text === "" ? undefined : ({ as: "excerpt", text } as const);
  };
  const all: readonly RunColumn<FoundRun>[] = [
    {
      ...{ id: "run", title: "Run", isShown: "always" },
      cell(run) {
        const href = routeTo("workflows", run.workflowId, run.runId);
        const about = textOf(run.fields?.parameters);
        return about === "" ? { as: "id", text: run.runId, href } : { as: "name", text: about, href, note: run.runId };
      },
    },
    {
      ...{ id: "workflow", title: "Workflow", isShown: "unless" },
      cell: ({ workflowId: text }) => ({ as: "text", text, href: routeTo("workflows", text) }),
    },
    { id: "status", title: "Status", isShown: "unless", cell: (run) => ({ as: "status", ...runWords(run) }) },
    { id: "user", title: "User", isShown: "if", cell: ({ userId: text }) => (text ? { as: "text", text } : undefined) },
    { id: "parameters", title: "Parameters", isShown: "if", cell: (run) => fields(run.fields?.parameters) },
    { id: "outputs", title: "Outputs", isShown: "if", cell: (run) => fields(run.fields?.outputs) },
    {
      ...{ id: "nodes", title: "Nodes", align: "end", isShown: "unless" },
      cell: ({ status, nodeCount, completedNodeCount }) => ({
        as: "number",
        text: hasEnded(status) ? String(nodeCount) : `${completedNodeCount}/${nodeCount}`,
      }),
    },
    ...workColumns<FoundRun>(({ totalDurationMs: ms, usage: used }) => ({ ms, used })),
    { id: "started", title: "Started", isShown: "unless", cell: ({ startedAt: at }) => ({ as: "time", at }) },
    {
      ...{ id: "error", title: "Error", isShown: "unless" },
      cell: ({ error }) => error && { as: "error", text: error.message },
    },
    {
      ...{ id: "again", title: "Run again", isTitleSpoken: true, align: "end", isShown: "unless" },
      cell: ({ status, workflowId: id, runId }) =>
        hasEnded(status) ? { as: "button", text: "Run again", href: `${routeTo("workflows", id, runId)}?again=yes` } : undefined,
    },
  ];
  return workflowId === undefined ? all : all.filter(({ id }) => id !== "workflow");
}
