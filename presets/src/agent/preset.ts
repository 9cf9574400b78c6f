import { createEndedRequests } from "@portico/adapters/telemetry/ended-requests";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { createRecentLines } from "@portico/adapters/telemetry/recent-lines";
import { definePreset } from "@portico/core";
import { agentService } from "../platform/agent-service.ts";
import { operatorNotifications } from "../platform/operator-notifications.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { serviceAdapters } from "../platform/service-adapters.ts";
import { probesService } from "../platform/service-pages.ts";
import { noteStores } from "../platform/stores-file.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type AgentConfig, agentSchema } from "./config.ts";

/** Only the agent service: surface `agent`. */
export const agent = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const observed = { prometheus, endedRequests: createEndedRequests(), recentLines: createRecentLines() };
  const hasConsole = options.settings.agent.console ?? false;
  const agents = agentService(options, observed, { hasConsole });
  return {
    name: "agent",
    onOpen: noteStores(options.settings.dataDir),
    adapters: [...serviceAdapters(options, observed), ...operatorNotifications(options, { hasConsole }), ...agents.adapters],
    plugins: [...agents.plugins, ...probesService(options, prometheus)],
    surfaces: agents.surfaces,
  };
});
