import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset } from "@portico/core";
import { agentService } from "../platform/agent-service.ts";
import { instanceAdapters } from "../platform/instance-adapters.ts";
import { logFormat } from "../platform/log-format.ts";
import { mcpToolSources } from "../platform/mcp-tools.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { storageAdapters } from "../platform/storage-adapters.ts";

export { chooseProviders } from "../platform/provider-choice.ts";
export { type AgentConfig, agentSchema } from "./config.ts";

/** The agent service alone: surface `agent`. */
export const agent = definePreset((options: PlatformOptions) => {
  const { settings, providers } = options;
  const prometheus = createPrometheusMetrics();
  const service = agentService(options, prometheus);
  return {
    ...service,
    name: "agent",
    adapters: [
      openTelemetry({ level: settings.log.level, format: logFormat(settings.log.format), prometheus }),
      ...storageAdapters(settings.dataDir),
      ...providers.map((provider) => provider.adapter),
      ...instanceAdapters(options),
      ...mcpToolSources(settings),
      ...service.adapters,
    ],
  };
});
