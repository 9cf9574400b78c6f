import type { EndedRequests } from "@portico/adapters/telemetry/ended-requests";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import type { RecentLines } from "@portico/adapters/telemetry/recent-lines";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { mcpAccountTools, mcpTools } from "@portico/adapters/tools/mcp";
import type { Adapter, Live } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";
import { instanceAudit, instanceUsage } from "./audit-and-usage.ts";
import { instance } from "./instance.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { mcpServerSecrets, type RotatingSettings, rotationOf } from "../settings/rotating-settings.ts";
import { VERSION } from "./version.ts";

/** The objects in which the telemetry of an app collects what pages of the service read. */
export interface Observed {
  /** Default: nothing is counted. */
  readonly prometheus?: PrometheusMetrics;
  /** Default: requests are not counted over time. */
  readonly endedRequests?: EndedRequests;
  /** Default: no lines are kept. */
  readonly recentLines?: RecentLines;
}

/**
 * The adapters of every service that accepts work, for all areas: telemetry, its store and users, providers, and tools of MCP servers. Default of
 * `store`: the data directory.
 */
export function serviceAdapters(
  options: PlatformOptions,
  observed: Observed,
  store: readonly Adapter[] = instance(options),
): readonly Adapter[] {
  const { settings, providers, proxyProcesses } = options;
  return [
    telemetry(settings, observed, proxyProcesses?.own),
    ...store,
    instanceAudit(settings),
    instanceUsage(settings, observed.endedRequests),
    recordSchedules({}),
    ...providers.map((provider) => provider.adapter),
    ...mcpToolSources(settings, rotationOf(options)),
  ];
}

/**
 * Logs to standard error. `auto` writes text on a terminal, and JSON otherwise. Exports over OTLP if the settings have an endpoint. `proxyProcess`: which
 * of several processes that serve the proxy this is.
 */
export function telemetry(
  { log, telemetry: exported }: Pick<PlatformSettings, "log" | "telemetry">,
  { prometheus, endedRequests, recentLines }: Observed,
  proxyProcess?: number,
): Adapter {
  const { level, format } = log;
  const chosen = format === "auto" ? (process.stderr.isTTY ? "text" : "json") : format;
  return openTelemetry({
    ...exported,
    ...{ level, format: chosen, serviceVersion: VERSION },
    ...(proxyProcess !== undefined && { proxyProcess }),
    ...(prometheus && { prometheus }),
    ...(endedRequests && { endedRequests }),
    ...(recentLines && { recentLines }),
  });
}

/** One source of tools for each configured MCP server, under its configured name. Without `rotating`, their secrets do not change. */
export function mcpToolSources(
  { mcpServers, outbound }: Pick<PlatformSettings, "mcpServers"> & Partial<Pick<PlatformSettings, "outbound">>,
  rotating?: Live<RotatingSettings>,
): readonly Adapter[] {
  return Object.entries(mcpServers).map(([id, server]) =>
    (server.auth ? mcpAccountTools : mcpTools)({ id, ...server, outbound, rotation: rotating && mcpServerSecrets(rotating, id) }),
  );
}
