import { RUN_SEARCH } from "@portico/core/contract";
import {
  choiceFilter,
  endedFilter,
  type RunColumn,
  type RunFilter,
  timeFilters,
  workColumns,
} from "../../blocks/runs/run-list.ts";
import { routeTo } from "../../shell/route.svelte.ts";
import { isRepeatable, nameOf, OUTCOME_WORDS, outcomeOf, type Run, sourceOf } from "./run.ts";

/** The filters in the address: `#/runs?agent_id=helper&outcome=failed`. `agents`: titles by ID. */
export function runFilters(
  agents: Readonly<Record<string, string>>,
  { isOwner }: { readonly isOwner: boolean },
): readonly RunFilter[] {
  return [
    {
      ...{ name: "q", title: "Words", placeholder: "Of the title or the error" },
      maxlength: RUN_SEARCH.characters,
    },
    choiceFilter({
      ...{ name: "outcome", title: "Outcome" },
      choices: Object.fromEntries(Object.entries(OUTCOME_WORDS).map(([id, { text }]) => [id, text])),
    }),
    { name: "agent_id", title: "Agent", choices: agents },
    ...timeFilters("started_from", "started_before"),
    {
      ...{ name: "reason", title: "Reason", placeholder: "Code, such as model_refused", maxlength: 100, isMore: true },
      describe: (value) => (/^[\w.-]{1,100}$/.test(value) ? value : undefined),
    },
    endedFilter("ended_from"),
    { name: "user_id", title: "User", isMore: true, ...(!isOwner && { control: "none" }) },
    choiceFilter({
      ...{ name: "kind", title: "Kind", isMore: true },
      choices: { background: "Background", conversation: "Conversation" },
      ask: (kind) => ({ background: kind === "" ? "" : String(kind === "background") }),
    }),
    { name: "delegated_by", title: "Delegated by", choices: agents, isMore: true },
    { name: "parent_run_id", title: "Parent run", placeholder: "run_…", isMore: true },
    choiceFilter({
      // Archived runs are left out unless one of these is chosen.
      ...{ name: "archived", title: "Archived", usual: "Hidden", isMore: true },
      choices: { shown: "Also archived", only: "Only archived" },
      ask: (archived) => ({ archived: archived === "" ? "false" : archived === "only" ? "true" : "" }),
    }),
  ];
}

/** The columns of the list. `runAgain` starts a failed background run again; undefined for users who may not. */
export const runColumns = (runAgain: ((run: Run) => Promise<void>) | undefined): readonly RunColumn<Run>[] => [
  {
    ...{ id: "run", title: "Run", isShown: "always" },
    cell: (run) => ({
      ...{ as: "name", text: nameOf(run), href: routeTo("runs", run.run_id) },
      note: run.archived_at === undefined ? undefined : "archived",
    }),
  },
  { id: "outcome", title: "Outcome", isShown: "unless", cell: (run) => ({ as: "status", ...outcomeOf(run) }) },
  { id: "agent", title: "Agent", isShown: "unless", cell: ({ agent_id: text }) => ({ as: "text", text }) },
  { id: "user", title: "User", isShown: "if", cell: ({ user_id: text }) => ({ as: "text", text }) },
  { id: "source", title: "From", isShown: "unless", cell: (run) => ({ as: "text", text: sourceOf(run) }) },
  {
    ...{ id: "error", title: "Error", isShown: "if" },
    cell: ({ failure }) => failure && { as: "error", text: failure.message },
  },
  ...workColumns<Run>(({ duration_ms: ms, usage: used }) => ({ ms, used })),
  { id: "started", title: "Started", align: "end", isShown: "unless", cell: ({ started_at: at }) => ({ as: "time", at }) },
  ...(runAgain
    ? [
        {
          ...{ id: "again", title: "Run again", isTitleSpoken: true, align: "end", isShown: "unless" },
          cell: (run) => (isRepeatable(run) ? { as: "button", text: "Run again", act: () => runAgain(run) } : undefined),
        } satisfies RunColumn<Run>,
      ]
    : []),
];
