import { agentsOf, turnsOf } from "../platform/agents-of.ts";
import { createPrometheusMetrics } from "@portico/adapters/telemetry/prometheus";
import { definePreset } from "@portico/core";
import { userFiles } from "@portico/plugins/attachments-media/user-files";
import { agentTurns } from "@portico/plugins/conversations-runs/agent-turns";
import { hasAgents } from "./has-agents.ts";
import { operatorNotifications } from "../platform/operator-notifications.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import { probesService } from "../platform/service-pages.ts";
import { serviceAdapters } from "../platform/service-adapters.ts";
import { workflowService } from "../platform/workflow-service.ts";
import { noteStores } from "../platform/stores-file.ts";

export type { PlatformOptions } from "../platform/platform-options.ts";
export { chooseProviders } from "../platform/provider-choice.ts";
export { readPlatformOptions } from "../platform/read-platform-options.ts";
export { type WorkflowConfig, workflowSchema } from "./config.ts";

/** Only the workflow service: surface `workflow`. If agents exist, only workflow nodes can give them turns. */
export const workflow = definePreset((options: PlatformOptions) => {
  const { settings } = options;
  const prometheus = createPrometheusMetrics();
  const workflows = workflowService(options, prometheus);
  const agents = hasAgents(settings);
  return {
    name: "workflow",
    onOpen: noteStores(settings.dataDir),
    adapters: [
      ...serviceAdapters(options, { prometheus }),
      // The console is in other processes of the instance.
      ...operatorNotifications(options, { hasConsole: settings.agent.console ?? false }),
      ...workflows.adapters,
      // Users upload files in other processes of the instance. Nodes and agents read them.
      userFiles(),
      ...(agents ? agentsOf(settings.agent) : []),
    ],
    plugins: [...(agents ? [agentTurns(turnsOf(settings))] : []), ...workflows.plugins, ...probesService(options, prometheus)],
    surfaces: workflows.surfaces,
  };
});
