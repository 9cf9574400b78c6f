import type { SERIES_FIELDS } from "@portico/plugins/measurements/contract";

type Field = (typeof SERIES_FIELDS)[number];

/** What the charts show. It is in the address: `#/measurements?range=day&by=model`. */
export interface Choice {
  readonly range: Range["id"];
  /** Empty: all calls together. */
  readonly by: Field | "";
}

interface Range {
  readonly id: "hour" | "day" | "month";
  readonly title: string;
}

export const RANGES: readonly Range[] = [
  { id: "hour", title: "Hour" },
  { id: "day", title: "Day" },
  { id: "month", title: "Month" },
];

export const FIELDS: readonly { readonly id: Choice["by"]; readonly title: string }[] = [
  { id: "", title: "All together" },
  { id: "source", title: "Area" },
  { id: "provider", title: "Provider" },
  { id: "model", title: "Model" },
  { id: "agentId", title: "Agent" },
  { id: "userId", title: "User" },
  { id: "workflowId", title: "Workflow" },
  { id: "tokenId", title: "Safe token" },
];

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
  return {
    range: RANGES.find(({ id }) => id === query.get("range"))?.id ?? "hour",
    by: FIELDS.find(({ id }) => id === query.get("by"))?.id ?? "",
  };
}

/** The choice as part of an address. */
export function writeChoice({ range, by }: Choice): string {
  return new URLSearchParams({ ...(range !== "hour" && { range }), ...(by !== "" && { by }) }).toString();
}

/** The query of the call: whole steps until now. */
export function queryOf({ range, by }: Choice) {
  const { step, ms } = STEPS[range];
  return { from: new Date(Date.now() - ms).toISOString(), step, ...(by !== "" && { by }) };
}
