import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, createApp, defineAdapter, ports, type ports as Ports } from "@portico/core";
import { credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { createNodeTable } from "@portico/plugins/workflow-service/node-table";
import { runWorkflowTool } from "@portico/plugins/workflow-service/run-workflow-tool";
import { openWorkflowStarter } from "@portico/plugins/workflow-service/starter";
import { chooseProviders, type ServedProvider } from "../../platform/provider-choice.ts";
import { workflowNodes } from "../../platform/workflow-nodes.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { hasAgents } from "../../workflow/preset.ts";

/** What a service with these settings loads definitions with. */
export interface NodeRules {
  readonly types: ReadonlyMap<string, Ports.NodeRules>;
  /** Names alone: to check a definition, no secret is looked into. */
  readonly secretNames: readonly string[];
}

/** Which service it is: its settings, and its preset. */
export interface ServiceKind {
  readonly settings: PlatformSettings;
  readonly preset: string;
}

/** The rules, in an app that is closed again: they are data and pure functions. */
export async function readNodeRules(service: ServiceKind): Promise<NodeRules> {
  const app = await createApp({ name: "node-rules", adapters: await ruleAdapters(service) });
  try {
    return toNodeRules(app.port(ports.workflowNodes), service);
  } finally {
    await app.close();
  }
}

/**
 * What kinds of nodes need to say their rules. Providers and tool servers are there by name, so that nodes that name others are found; they
 * are not asked for anything, and no store is opened.
 */
export async function ruleAdapters({ settings, preset }: ServiceKind): Promise<readonly Adapter[]> {
  const providers = await chooseProviders(settings, { env: process.env });
  return [
    systemClock(),
    randomIds(),
    memoryRecords(),
    memorySecrets(),
    memoryTelemetry({ telemetry: createMemoryTelemetry() }),
    openWorkflowStarter(),
    ...providers.map((provider) => namedProvider(provider)),
    ...Object.keys(settings.mcpServers).map((id) => namedTools({ id })),
    ...(servesAgents({ settings, preset }) ? [runWorkflowTool()] : []),
    ...(preset === "workflow" ? [] : [credentialTool({})]),
    ...workflowNodes(settings),
  ];
}

export function toNodeRules(nodes: readonly Ports.WorkflowNode[], service: ServiceKind): NodeRules {
  const { rules } = createNodeTable(nodes, { hasAgents: servesAgents(service) });
  return { types: rules, secretNames: Object.keys(service.settings.workflow.secrets) };
}

/** Every preset but the workflow service alone has agents, and takes those that come later. */
function servesAgents({ settings, preset }: ServiceKind): boolean {
  return preset !== "workflow" || hasAgents(settings);
}

const namedProvider = defineAdapter({
  name: "cli/named-provider",
  port: ports.models,
  needs: {},
  open: (_given, { id, protocol, models }: ServedProvider): Ports.ModelProvider => ({
    id,
    type: id,
    protocol,
    listModels: async () => (models === "discover" ? notAsked() : models),
    send: async () => notAsked(),
    redact: (text) => text,
  }),
});

const namedTools = defineAdapter({
  name: "cli/named-tools",
  port: ports.tools,
  needs: {},
  open: (_given, { id }: { readonly id: string }): Ports.ToolSource => ({
    id,
    list: async () => notAsked(),
    call: async () => notAsked(),
  }),
});

function notAsked(): never {
  throw new Error("Nothing is asked to check a definition");
}
