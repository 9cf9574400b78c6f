import { readdirSync } from "node:fs";
import { loopbackRealtime } from "@portico/adapters/realtime/loopback";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { type Adapter, definePreset } from "@portico/core";
import { agentsForWorkflows } from "@portico/plugins/workflow-service/agents";
import { runWorkflowTool } from "@portico/plugins/workflow-service/run-workflow-tool";
import { agentTurns } from "../platform/agent-turns.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { standaloneAdapters } from "../platform/standalone-adapters.ts";
import { workflowService } from "../platform/workflow-service.ts";
import type { PlatformSettings } from "../settings/platform.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type WorkflowConfig, workflowSchema } from "./config.ts";

/** The workflow service alone: surface `workflow`. Where there are agents, its nodes can give them turns; nobody else can. */
export const workflow = definePreset((options: PlatformOptions) => {
  const { settings } = options;
  const prometheus = createPrometheusMetrics();
  const service = workflowService(options, prometheus);
  return {
    ...service,
    name: "workflow",
    adapters: [
      ...standaloneAdapters(options, prometheus),
      ...service.adapters,
      ...(hasAgents(settings) ? agentsAlone(settings) : []),
    ],
  };
});

/**
 * Whether an instance of the workflow service alone has agents: their folder has one when it starts. Without any, definitions with `agent`
 * nodes are refused when they are loaded, and not when a run comes to that node.
 */
export function hasAgents({ agent }: Pick<PlatformSettings, "agent">): boolean {
  try {
    return readdirSync(agent.agentsDir, { withFileTypes: true }).some((entry) => !entry.isFile() && !entry.name.startsWith("."));
  } catch {
    return false;
  }
}

/** Turns of agents to which no client connects: whoever started a turn is told its end by `backgroundTurns`. */
function agentsAlone(settings: PlatformSettings): readonly Adapter[] {
  return [...agentTurns(settings), loopbackRealtime(undefined), agentsForWorkflows(), runWorkflowTool()];
}
