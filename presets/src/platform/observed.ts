import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import type { RecentLines } from "@portico/adapters/telemetry/recent-lines";

/** The objects in which the telemetry of an app collects what pages of the service read. */
export interface Observed {
  /** Default: nothing is counted. */
  readonly prometheus?: PrometheusMetrics;
  /** Default: no lines are kept. */
  readonly recentLines?: RecentLines;
}
