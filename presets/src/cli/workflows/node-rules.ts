import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, createApp, ports, type ports as Ports } from "@portico/core";
import { createNodeTable } from "@portico/plugins/workflow-service/node-table";
import { workflowNodes } from "../../platform/workflow-nodes.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { hasAgents } from "../../workflow/preset.ts";

/** What a service with these settings loads definitions with. */
export interface NodeRules {
  readonly types: ReadonlyMap<string, Ports.NodeRules>;
  /** Names alone: to check a definition, no secret is looked into. */
  readonly secretNames: readonly string[];
}

/** Read the rules. No store, provider or tool server is opened for them. */
export async function readNodeRules(settings: PlatformSettings, preset: string): Promise<NodeRules> {
  const app = await createApp({ name: "node-rules", adapters: ruleAdapters(settings) });
  try {
    return toNodeRules(app.port(ports.workflowNodes), settings, preset);
  } finally {
    await app.close();
  }
}

/** What kinds of nodes need to say their rules. */
export function ruleAdapters(settings: PlatformSettings): readonly Adapter[] {
  return [
    systemClock(),
    randomIds(),
    memoryRecords(),
    memorySecrets(),
    memoryTelemetry({ telemetry: createMemoryTelemetry() }),
    ...workflowNodes(settings),
  ];
}

/** Every preset but the workflow service alone has agents, and takes those that come later. */
export function toNodeRules(nodes: readonly Ports.WorkflowNode[], settings: PlatformSettings, preset: string): NodeRules {
  const { rules } = createNodeTable(nodes, { hasAgents: preset !== "workflow" || hasAgents(settings) });
  return { types: rules, secretNames: Object.keys(settings.workflow.secrets) };
}
