import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset, type Preset } from "@portico/core";
import { executionGrants } from "@portico/plugins/workflow-service/execution-grants";
import { agentService } from "../platform/agent-service.ts";
import { pagesOf, withConsoleOrigin } from "../platform/allowed-origins.ts";
import type { Listeners, PlatformOptions } from "../platform/platform-options.ts";
import { proxyService } from "../platform/proxy-service.ts";
import { serviceAdapters } from "../platform/service-adapters.ts";
import { probesService } from "../platform/service-pages.ts";
import { workflowService } from "../platform/workflow-service.ts";
import type { PlatformSettings } from "../settings/platform.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy`, `workflow` and `agent`. */
export const local = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const { settings, listeners } = options;
  const hasConsole = settings.agent.console ?? true;
  const workflows = workflowService(options, prometheus);
  const agents = agentService(options, prometheus, hasConsole);
  return {
    name: "local",
    adapters: [...serviceAdapters(options, prometheus), ...workflows.adapters, ...agents.adapters],
    plugins: [
      proxyService(options),
      ...workflows.plugins,
      ...agents.plugins,
      executionGrants({}),
      ...probesService(options, prometheus),
    ],
    surfaces: {
      ...workflows.surfaces,
      ...agents.surfaces,
      ...(hasConsole && listeners && consoleSurfaces(settings, listeners)),
    },
  };
});

/** The console's page calls the other surfaces from the agent service's address, which browsers treat as another origin. */
function consoleSurfaces({ workflow, agent }: PlatformSettings, listeners: Listeners): Required<Preset>["surfaces"] {
  const outside = pagesOf({ publicUrl: agent.publicUrl });
  return {
    proxy: { allowedOrigins: withConsoleOrigin(outside, listeners), otherOrigins: "answered" },
    workflow: { allowedOrigins: withConsoleOrigin([...pagesOf(workflow), ...outside], listeners) },
  };
}
