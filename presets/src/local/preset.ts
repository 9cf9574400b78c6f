import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset, type Preset } from "@portico/core";
import { agentsForWorkflows } from "@portico/plugins/workflow-service/agents";
import { executionGrants } from "@portico/plugins/workflow-service/execution-grants";
import { runWorkflowTool } from "@portico/plugins/workflow-service/run-workflow-tool";
import { agentService } from "../platform/agent-service.ts";
import { instanceAdapters } from "../platform/instance-adapters.ts";
import { logFormat } from "../platform/log-format.ts";
import { mcpToolSources } from "../platform/mcp-tools.ts";
import { withConsoleOrigin } from "../platform/console-origin.ts";
import type { Listeners, PlatformOptions } from "../platform/platform-options.ts";
import { workflowService } from "../platform/workflow-service.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { proxy } from "../proxy/preset.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy`, `workflow` and `agent`. */
export const local = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const { settings, listeners } = options;
  const { level, format } = settings.log;
  const hasConsole = settings.agent.console ?? true;
  const workflows = workflowService(options, prometheus);
  const agents = agentService(options, prometheus, hasConsole);
  return {
    name: "local",
    extends: proxy(options),
    adapters: [
      // In place of the proxy's own: one place shows what all surfaces did.
      openTelemetry({ level, format: logFormat(format), prometheus }),
      ...instanceAdapters(options),
      ...mcpToolSources(settings),
      ...workflows.adapters,
      ...agents.adapters,
      agentsForWorkflows(),
      runWorkflowTool(),
    ],
    plugins: [...workflows.plugins, ...agents.plugins, executionGrants({})],
    surfaces: {
      ...workflows.surfaces,
      ...agents.surfaces,
      ...(hasConsole && listeners && consoleSurfaces(settings, listeners)),
    },
  };
});

/** The console's page calls the other surfaces from the agent service's address, which is another origin to a browser. */
function consoleSurfaces({ workflow }: PlatformSettings, listeners: Listeners): Required<Preset>["surfaces"] {
  return {
    proxy: { allowedOrigins: withConsoleOrigin([], listeners), otherOrigins: "as ever" },
    workflow: { allowedOrigins: withConsoleOrigin(workflow.allowedOrigins, listeners) },
  };
}
