import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset } from "@portico/core";
import { agentsForWorkflows } from "@portico/plugins/workflow-service/agents";
import { executionGrants } from "@portico/plugins/workflow-service/execution-grants";
import { runWorkflowTool } from "@portico/plugins/workflow-service/run-workflow-tool";
import { agentService } from "../platform/agent-service.ts";
import { instanceAdapters } from "../platform/instance-adapters.ts";
import { logFormat } from "../platform/log-format.ts";
import { mcpToolSources } from "../platform/mcp-tools.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { workflowService } from "../platform/workflow-service.ts";
import { proxy } from "../proxy/preset.ts";

export { chooseProviders } from "../platform/provider-choice.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy`, `workflow` and `agent`. */
export const local = definePreset((options: PlatformOptions) => {
  const prometheus = createPrometheusMetrics();
  const { level, format } = options.settings.log;
  const workflows = workflowService(options, prometheus);
  const agents = agentService(options, prometheus);
  return {
    name: "local",
    extends: proxy(options),
    adapters: [
      // In place of the proxy's own: one place shows what all surfaces did.
      openTelemetry({ level, format: logFormat(format), prometheus }),
      ...instanceAdapters(options),
      ...mcpToolSources(options.settings),
      ...workflows.adapters,
      ...agents.adapters,
      agentsForWorkflows(),
      runWorkflowTool(),
    ],
    plugins: [...workflows.plugins, ...agents.plugins, executionGrants({})],
    surfaces: { ...workflows.surfaces, ...agents.surfaces },
  };
});
