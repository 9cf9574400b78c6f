import type { SERIES_FIELDS, WORK_KINDS } from "@portico/operator/measurements/contract";
import type { UsageRange } from "@portico/operator/usage/contract";

export type Field = (typeof SERIES_FIELDS)[number];
type Area = "agent" | "workflow" | "proxy";
type WorkKind = (typeof WORK_KINDS)[number];

/** What the charts show. It is in the address: `#/measurements?range=day&by=userId&model=m-large`. */
export interface Choice {
  /** Empty: calls of models. `all`: ended work of all kinds. */
  readonly show: "" | "all" | WorkKind;
  readonly range: UsageRange | "own";
  /** The first and the last day of an own range, such as `2030-12-31`. Empty: without it. */
  readonly from: string;
  readonly to: string;
  /** Of calls. Empty: all of them together. */
  readonly by: Field | "";
  /** Of calls: the values that they must have. */
  readonly where: Where;
}

export type Where = Readonly<Partial<Record<Exclude<Field, "source">, string>>> & { readonly source?: Area };

/** The time of a choice. */
export type Time = Pick<Choice, "range" | "from" | "to">;

export const RANGES: readonly { readonly id: Choice["range"]; readonly title: string; readonly phrase: string }[] = [
  { id: "hour", title: "Last hour", phrase: "over the last hour" },
  { id: "day", title: "Last 24 hours", phrase: "over the last 24 hours" },
  { id: "today", title: "Today", phrase: "today" },
  { id: "yesterday", title: "Yesterday", phrase: "yesterday" },
  { id: "last-7-days", title: "Last 7 days", phrase: "over the last 7 days" },
  { id: "last-week", title: "Last week", phrase: "over the last week" },
  { id: "last-30-days", title: "Last 30 days", phrase: "over the last 30 days" },
  { id: "this-month", title: "This month", phrase: "this month" },
  { id: "last-month", title: "Last month", phrase: "over the last month" },
  { id: "own", title: "Own days …", phrase: "" },
];

export const SHOWN: readonly { readonly id: Choice["show"]; readonly title: string }[] = [
  { id: "", title: "Calls of models" },
  { id: "all", title: "All work" },
  { id: "turn", title: "Turns of agents" },
  { id: "run", title: "Workflow runs" },
  { id: "webhook", title: "Webhook events" },
  { id: "request", title: "Requests" },
];

export const FIELDS: readonly { readonly id: Field; readonly title: string }[] = [
  { id: "source", title: "Area" },
  { id: "provider", title: "Provider" },
  { id: "model", title: "Model" },
  { id: "agentId", title: "Agent" },
  { id: "userId", title: "User" },
  { id: "workflowId", title: "Workflow" },
  { id: "tokenId", title: "Safe token" },
];

/** The service accepts this length of a value. */
const VALUE_CHARACTERS = 256;
const AREAS: Readonly<Record<Area, string>> = { agent: "Agents", workflow: "Workflows", proxy: "Model proxy" };

const DAY_MS = 24 * 60 * 60_000;
/** Charts have an hour for each step up to this number of days, and a day for each step beyond it. */
const DAYS_OF_HOURS = 3;
const DATE = /^\d{4}-\d\d-\d\d$/;
/** A time without a choice. */
const USUAL = "hour";

/** Unknown values in the address count as absent ones. */
export function readChoice(query: URLSearchParams): Choice {
  const values = FIELDS.flatMap(({ id }): [Field, string][] => {
    const value = query.get(id);
    const isValid = value && value.length <= VALUE_CHARACTERS && (id !== "source" || Object.hasOwn(AREAS, value));
    return isValid ? [[id, value]] : [];
  });
  return {
    show: SHOWN.find(({ id }) => id === query.get("show"))?.id ?? "",
    ...readTime(query),
    by: FIELDS.find(({ id }) => id === query.get("by"))?.id ?? "",
    where: Object.fromEntries(values) as Where,
  };
}

function readTime(query: URLSearchParams): Time {
  const range = RANGES.find(({ id }) => id === query.get("range"))?.id ?? USUAL;
  const day = (name: string) => (range === "own" && DATE.test(query.get(name) ?? "") ? query.get(name)! : "");
  return { range, from: day("from"), to: day("to") };
}

/** The choice as part of an address. Work has neither fields nor filters. */
export function writeChoice({ show, range, from, to, by, where }: Choice): string {
  const ofCalls = [...(by === "" ? [] : [["by", by]]), ...Object.entries(where)];
  const days = Object.entries({ from, to }).filter(([, day]) => range === "own" && day !== "");
  return new URLSearchParams([
    ...(range === USUAL ? [] : [["range", range]]),
    ...days,
    ...(show === "" ? ofCalls : [["show", show]]),
  ]).toString();
}

/** Whether a time can be asked for: an own range has both days, and ends after it begins. */
export function isWhole({ range, from, to }: Time): boolean {
  return range !== "own" || (from !== "" && to !== "" && from <= to);
}

/** The time of a query. */
export function timeOf({ range, from, to }: Time) {
  return range === "own" ? { from, to } : { range };
}

/** The length of the steps of charts. */
export function stepOf({ range, from, to }: Time): "minute" | "hour" | "day" {
  if (range === "hour") return "minute";
  if (range === "own") return (Date.parse(to) - Date.parse(from)) / DAY_MS < DAYS_OF_HOURS ? "hour" : "day";
  return range === "day" || range === "today" || range === "yesterday" ? "hour" : "day";
}

/** Whether its hours are those of the reader: the last hour and the last 24 hours have no days. */
export function isRolling({ range }: Time): boolean {
  return range === "hour" || range === "day";
}

/** The time in words, for the end of a title. */
export function phraseOf({ range, from, to }: Time): string {
  return range === "own" ? `from ${from} to ${to}` : RANGES.find(({ id }) => id === range)!.phrase;
}

/** The query of calls of models: the most expensive values have lines of their own. */
export function queryOf({ by, where, ...time }: Time & Pick<Choice, "by" | "where">) {
  return { ...timeOf(time), step: stepOf(time), order: "cost", ...where, ...(by !== "" && { by }) } as const;
}

/** A value of a field, for people. */
export function nameOfValue(field: Field, value: string): string {
  return field === "source" ? (AREAS[value as Area] ?? value) : value;
}

const NONE: Readonly<Record<string, string>> = {
  userId: "No user",
  agentId: "No agent",
  workflowId: "No workflow",
  tokenId: "No safe token",
};

/** A value of a field as a chart or a table names it. */
export function nameOfPart(
  { value, isRest }: { readonly value?: string | undefined; readonly isRest: boolean },
  by: Field,
): string {
  if (isRest) return "All others";
  return value === undefined ? (NONE[by] ?? "None") : nameOfValue(by, value);
}
