import { LEVELS } from "@portico/plugins/log/contract";

/** The filters in the address: `#/log?level=warn&area=model-proxy`. An empty filter matches everything. */
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

export const KIND_CHOICES = [
  { id: "", title: "All lines" },
  { id: "message", title: "All but requests" },
  { id: "request", title: "Requests" },
] as const;

/** The service accepts this length of a word. */
export const WORD_CHARACTERS = 200;

export function readFilters(query: URLSearchParams): LogFilters {
  const of = (name: string) => (query.get(name) ?? "").trim().slice(0, WORD_CHARACTERS);
  const [level, kind] = [of("level"), of("kind")];
  return {
    level: LEVELS.some((each) => each === level) ? level : "",
    kind: KIND_CHOICES.some(({ id }) => id === kind) ? kind : "",
    ...{ area: of("area"), text: of("text"), id: of("id") },
  };
}

/** The filters as part of an address. It is also the query of the call. */
export function writeFilters(filters: LogFilters): string {
  return new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== "")).toString();
}
