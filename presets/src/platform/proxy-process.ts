import { createEndedRequests } from "@portico/adapters/telemetry/ended-requests";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import type { RecentLines } from "@portico/adapters/telemetry/recent-lines";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { definePreset, ports } from "@portico/core";
import { consoleSurfaces } from "../settings/allowed-origins.ts";
import { instanceUsage } from "./audit-and-usage.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { proxyService } from "./proxy-service.ts";
import { telemetry } from "./service-adapters.ts";

export { createPrometheusMetrics, lastingSnapshot, sumSnapshots } from "@portico/adapters/telemetry/prometheus";
export type { MetricsSnapshot } from "@portico/adapters/telemetry/prometheus";
export { createRecentLines, type RecentLines } from "@portico/adapters/telemetry/recent-lines";

/** Options of `proxyProcess`. */
export interface ProxyProcessOptions extends PlatformOptions {
  /** What the instance shows of this process. Undefined if it shows no metrics: measuring costs time of each call. */
  readonly measured: PrometheusMetrics | undefined;
  /** The newest lines of its log. Undefined if the instance shows no log. */
  readonly recentLines: RecentLines | undefined;
  /** Whether the instance counts ended requests over time, as the preset `local` does. */
  readonly countsRequests: boolean;
  /** Whether pages of the web console call the proxy. */
  readonly hasConsole: boolean;
}

/**
 * One of several processes that serve the model proxy of an instance on one machine. It uses the records of the instance's data directory beside
 * the instance itself, and has no other area.
 */
export const proxyProcess = definePreset((options: ProxyProcessOptions) => {
  const { settings, providers, measured, recentLines, countsRequests, hasConsole, listeners, proxyProcesses } = options;
  const endedRequests = countsRequests ? createEndedRequests() : undefined;
  const observed = {
    ...(measured && { prometheus: measured }),
    ...(recentLines && { recentLines }),
    ...(endedRequests && { endedRequests }),
  };
  const proxy = hasConsole && listeners ? consoleSurfaces(settings, listeners)["proxy"] : undefined;
  return {
    name: "proxy-process",
    adapters: [
      telemetry(settings, observed, proxyProcesses?.own),
      ...sqliteStore({ dir: settings.dataDir, ports: [ports.records, ports.secrets] }),
      instanceUsage(settings, endedRequests),
      ...providers.map((provider) => provider.adapter),
    ],
    plugins: [proxyService(options)],
    ...(proxy && { surfaces: { proxy } }),
  };
});
