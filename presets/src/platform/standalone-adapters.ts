import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import type { PrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import type { Adapter } from "@portico/core";
import { instanceAdapters } from "./instance-adapters.ts";
import { logFormat } from "./log-format.ts";
import { mcpToolSources } from "./mcp-tools.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { storageAdapters } from "./storage-adapters.ts";

/** What a preset of one service has beside that: telemetry, storage, providers, the instance, and tools of MCP servers. */
export function standaloneAdapters(options: PlatformOptions, prometheus: PrometheusMetrics): readonly Adapter[] {
  const { settings, providers } = options;
  return [
    openTelemetry({ level: settings.log.level, format: logFormat(settings.log.format), prometheus }),
    ...storageAdapters(settings.dataDir),
    ...providers.map((provider) => provider.adapter),
    ...instanceAdapters(options),
    ...mcpToolSources(settings),
  ];
}
