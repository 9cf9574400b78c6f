import { LEVELS } from "@portico/operator/log/contract";

/** The filters in the address: `#/log?level=warn&area=model-proxy`. An empty filter matches everything, but `kind` leaves out requests. */
export interface LogFilters {
  readonly level: string;
  readonly kind: string;
  readonly area: string;
  readonly text: string;
  readonly id: string;
}

/** The levels by how they are shown: each choice includes the more urgent levels. */
export const LEVEL_CHOICES = [
  { id: "", title: "All levels" },
  { id: "info", title: "Info and higher" },
  { id: "warn", title: "Warnings and errors" },
  { id: "error", title: "Errors" },
] as const;

/** This page and others of the console call the service all the time. Without a choice, these requests are left out. */
const USUAL_KIND = "message";
export const KIND_CHOICES = [
  { id: USUAL_KIND, title: "All but requests" },
  { id: "work", title: "Turns and runs" },
  { id: "all", title: "All lines" },
  { id: "request", title: "Requests" },
] as const;

/** The service accepts this length of a word. */
export const WORD_CHARACTERS = 200;

export function readFilters(query: URLSearchParams): LogFilters {
  const of = (name: string) => (query.get(name) ?? "").trim().slice(0, WORD_CHARACTERS);
  const [level, kind] = [of("level"), of("kind")];
  return {
    level: LEVELS.some((each) => each === level) ? level : "",
    kind: KIND_CHOICES.some(({ id }) => id === kind) ? kind : USUAL_KIND,
    ...{ area: of("area"), text: of("text"), id: of("id") },
  };
}

/** The filters as part of an address. Empty for those of a page without a choice. */
export function writeFilters(filters: LogFilters): string {
  return written({ ...filters, kind: filters.kind === USUAL_KIND ? "" : filters.kind }).toString();
}

/** The filters as the query of the call: the lines of all processes of the service. */
export function toQuery(filters: LogFilters): Record<string, string> {
  return { ...Object.fromEntries(written({ ...filters, kind: filters.kind === "all" ? "" : filters.kind })), processes: "all" };
}

function written(filters: LogFilters): URLSearchParams {
  return new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ""));
}
