import type { EndedRequests } from "@portico/adapters/telemetry/ended-requests";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import type { RecentLines } from "@portico/adapters/telemetry/recent-lines";

/** The objects in which the telemetry of an app collects what pages of the service read. */
export interface Observed {
  /** Default: nothing is counted. */
  readonly prometheus?: PrometheusMetrics;
  /** Default: requests are not counted over time. */
  readonly endedRequests?: EndedRequests;
  /** Default: no lines are kept. */
  readonly recentLines?: RecentLines;
}
