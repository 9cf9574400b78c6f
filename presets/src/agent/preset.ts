import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset } from "@portico/core";
import { agentService } from "../platform/agent-service.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { standaloneAdapters } from "../platform/standalone-adapters.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type AgentConfig, agentSchema } from "./config.ts";

/** The agent service alone: surface `agent`. */
export const agent = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const service = agentService(options, prometheus, options.settings.agent.console ?? false);
  return {
    ...service,
    name: "agent",
    adapters: [...standaloneAdapters(options, prometheus), ...service.adapters],
  };
});
