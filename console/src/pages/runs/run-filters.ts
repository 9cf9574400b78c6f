import type { Filter, ListAddress, ListColumn } from "../../blocks/list/list-address.svelte.ts";
import { readRange, TIME_FILTERS } from "../../blocks/list/time-range.ts";

/** The choices, by the list's own terms. Interrupted runs were stopped and can continue. */
export const STATUSES: Readonly<Record<string, string>> = {
  running: "Running",
  idle: "Idle",
  interrupted: "Interrupted",
  completed: "Completed",
  failed: "Failed",
};

export const KINDS: Readonly<Record<string, string>> = { background: "Background", conversation: "Conversation" };

/** Archived runs are left out unless one of these is chosen. */
export const ARCHIVED: Readonly<Record<string, string>> = { shown: "Also archived", only: "Only archived" };

const oneOf = (words: Readonly<Record<string, string>>) => (value: string) =>
  Object.hasOwn(words, value) ? words[value] : undefined;

/** The filters in the address: `#/runs?agent_id=helper&status=failed`. */
export const RUN_FILTERS: readonly Filter[] = [
  { name: "q", title: "Words" },
  { name: "status", title: "Status", describe: oneOf(STATUSES) },
  { name: "agent_id", title: "Agent" },
  ...TIME_FILTERS,
  { name: "user_id", title: "User" },
  { name: "kind", title: "Kind", describe: oneOf(KINDS) },
  { name: "delegated_by", title: "Delegated by" },
  { name: "parent_run_id", title: "Parent run" },
  { name: "archived", title: "Archived", describe: oneOf(ARCHIVED) },
];

/** The filters behind "More filters". */
export const MORE_FILTERS = ["user_id", "kind", "delegated_by", "parent_run_id", "archived"] as const;

export const RUN_COLUMNS = [
  { id: "run", title: "Run", isShown: "always" },
  { id: "status", title: "Status", isShown: "unless" },
  { id: "agent", title: "Agent", isShown: "unless" },
  { id: "user", title: "User", isShown: "if" },
  { id: "source", title: "From", isShown: "unless" },
  { id: "error", title: "Error", isShown: "if" },
  { id: "duration", title: "Duration", align: "end", isShown: "unless" },
  { id: "tokens", title: "Tokens", align: "end", isShown: "if" },
  { id: "cost", title: "Cost", align: "end", isShown: "if" },
  { id: "started", title: "Started", align: "end", isShown: "unless" },
] as const satisfies readonly ListColumn[];

/** The query of a search. */
export function toQuery(address: ListAddress): Record<string, string> {
  const value = (name: string) => address.value(name);
  const { from, until } = readRange(value);
  const [status, kind, archived] = [value("status"), value("kind"), value("archived")];
  const given = {
    q: value("q"),
    agent_id: value("agent_id"),
    user_id: value("user_id"),
    delegated_by: value("delegated_by"),
    parent_run_id: value("parent_run_id"),
    status: status === "interrupted" ? "idle" : status,
    interrupted: status === "interrupted" ? "true" : "",
    background: kind === "" ? "" : String(kind === "background"),
    archived: archived === "" ? "false" : archived === "only" ? "true" : "",
    started_from: from ?? "",
    started_before: until ?? "",
  };
  return Object.fromEntries(Object.entries(given).filter(([, each]) => each !== ""));
}
