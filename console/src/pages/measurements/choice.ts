import type { SERIES_FIELDS, WORK_KINDS } from "@portico/operator/measurements/contract";

export type Field = (typeof SERIES_FIELDS)[number];
type Area = "agent" | "workflow" | "proxy";
type WorkKind = (typeof WORK_KINDS)[number];

/** What the charts show. It is in the address: `#/measurements?range=day&by=userId&model=m-large`. */
export interface Choice {
  /** Empty: calls of models. `all`: ended work of all kinds. */
  readonly show: "" | "all" | WorkKind;
  readonly range: Range["id"];
  /** Of calls. Empty: all of them together. */
  readonly by: Field | "";
  /** Of calls: the values that they must have. */
  readonly where: Where;
}

export type Where = Readonly<Partial<Record<Exclude<Field, "source">, string>>> & { readonly source?: Area };

interface Range {
  readonly id: "hour" | "day" | "month";
  readonly title: string;
}

export const RANGES: readonly Range[] = [
  { id: "hour", title: "Hour" },
  { id: "day", title: "Day" },
  { id: "month", title: "Month" },
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

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const STEPS = {
  hour: { step: "minute", ms: 59 * MINUTE_MS },
  day: { step: "hour", ms: 23 * HOUR_MS },
  month: { step: "day", ms: 29 * 24 * HOUR_MS },
} as const;

/** Unknown values in the address count as absent ones. */
export function readChoice(query: URLSearchParams): Choice {
  const values = FIELDS.flatMap(({ id }): [Field, string][] => {
    const value = query.get(id);
    const isValid = value && value.length <= VALUE_CHARACTERS && (id !== "source" || Object.hasOwn(AREAS, value));
    return isValid ? [[id, value]] : [];
  });
  return {
    show: SHOWN.find(({ id }) => id === query.get("show"))?.id ?? "",
    range: RANGES.find(({ id }) => id === query.get("range"))?.id ?? "hour",
    by: FIELDS.find(({ id }) => id === query.get("by"))?.id ?? "",
    where: Object.fromEntries(values) as Where,
  };
}

/** The choice as part of an address. Work has neither fields nor filters. */
export function writeChoice({ show, range, by, where }: Choice): string {
  const ofCalls = [...(by === "" ? [] : [["by", by]]), ...Object.entries(where)];
  return new URLSearchParams([
    ...(range === "hour" ? [] : [["range", range]]),
    ...(show === "" ? ofCalls : [["show", show]]),
  ]).toString();
}

/** The query of a call: whole steps until now. */
export function timeOf(range: Choice["range"]) {
  const { step, ms } = STEPS[range];
  return { from: new Date(Date.now() - ms).toISOString(), step };
}

/** The query of calls of models. */
export function queryOf({ range, by, where }: Pick<Choice, "range" | "by" | "where">) {
  return { ...timeOf(range), ...where, ...(by !== "" && { by }) } as const;
}

/** A value of a field, for people. */
export function nameOfValue(field: Field, value: string): string {
  return field === "source" ? (AREAS[value as Area] ?? value) : value;
}
