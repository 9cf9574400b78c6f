import { RUN_SEARCH } from "@portico/core/contract";
import { choiceFilter, type RunColumn, type RunFilter, timeFilters, workColumns } from "../../blocks/runs/run-list.ts";
import { routeTo } from "../../shell/route.svelte.ts";
import { nameOf, type Run, sourceOf, statusOf } from "./run.ts";

/** The filters in the address: `#/runs?agent_id=helper&status=failed`. `agents`: titles by ID. */
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
      ...{ name: "status", title: "Status" },
      // By the list's own terms. Interrupted runs were stopped and can continue.
      choices: { running: "Running", idle: "Idle", interrupted: "Interrupted", completed: "Completed", failed: "Failed" },
      ask: (status) => (status === "interrupted" ? { status: "idle", interrupted: "true" } : { status }),
    }),
    { name: "agent_id", title: "Agent", choices: agents },
    ...timeFilters("started_from", "started_before"),
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

export const RUN_COLUMNS: readonly RunColumn<Run>[] = [
  {
    ...{ id: "run", title: "Run", isShown: "always" },
    cell: (run) => ({
      ...{ as: "name", text: nameOf(run), href: routeTo("runs", run.run_id) },
      note: run.archived_at === undefined ? undefined : "archived",
    }),
  },
  { id: "status", title: "Status", isShown: "unless", cell: (run) => ({ as: "status", ...statusOf(run) }) },
  { id: "agent", title: "Agent", isShown: "unless", cell: ({ agent_id: text }) => ({ as: "text", text }) },
  { id: "user", title: "User", isShown: "if", cell: ({ user_id: text }) => ({ as: "text", text }) },
  { id: "source", title: "From", isShown: "unless", cell: (run) => ({ as: "text", text: sourceOf(run) }) },
  {
    ...{ id: "error", title: "Error", isShown: "if" },
    cell: ({ failure }) => failure && { as: "error", text: failure.message },
  },
  ...workColumns<Run>(({ duration_ms: ms, usage: used }) => ({ ms, used })),
  { id: "started", title: "Started", align: "end", isShown: "unless", cell: ({ started_at: at }) => ({ as: "time", at }) },
];
