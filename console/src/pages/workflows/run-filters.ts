import { RUN_WORDS } from "./status-words.ts";
import type { RunQuery, RunStatus } from "./workflow-calls.ts";

/** The filters in the address: `#/workflows/triage?status=failed&since=1d`. An empty filter matches everything. */
export interface RunFilters {
  readonly status: RunStatus | "";
  readonly since: Since | "";
  /** Words of the error. */
  readonly q: string;
}

const HOUR_MS = 3_600_000;
const SINCE_MS = { "1h": HOUR_MS, "1d": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS, "30d": 30 * 24 * HOUR_MS };
export type Since = keyof typeof SINCE_MS;

export const SINCE: Readonly<Record<Since, string>> = {
  "1h": "The last hour",
  "1d": "The last day",
  "7d": "The last 7 days",
  "30d": "The last 30 days",
};

export function readFilters(query: URLSearchParams): RunFilters {
  const of = (name: string) => query.get(name) ?? "";
  const [status, since] = [of("status"), of("since")];
  return {
    status: Object.hasOwn(RUN_WORDS, status) ? (status as RunStatus) : "",
    since: Object.hasOwn(SINCE_MS, since) ? (since as Since) : "",
    q: of("q").trim(),
  };
}

/** The filters as part of an address. */
export function writeFilters(filters: RunFilters): string {
  return new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== "")).toString();
}

/** The query of a search. */
export function toQuery(workflowId: string, { status, since, q }: RunFilters): RunQuery {
  return {
    workflowId,
    ...(status !== "" && { status }),
    ...(since !== "" && { startedFrom: new Date(Math.floor(Date.now() / 1000) * 1000 - SINCE_MS[since]).toISOString() }),
    ...(q !== "" && { q }),
  };
}
