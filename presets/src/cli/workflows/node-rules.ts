import type { KnownParts, ports } from "@portico/core";
import { credentialDefinition } from "@portico/plugins/model-proxy/credential-tool";
import { nodeRules } from "@portico/plugins/workflow-service/definitions";
import { runWorkflowDefinition } from "@portico/plugins/workflow-service/run-workflow-tool";
import { chooseProviders } from "../../platform/provider-choice.ts";
import { workflowNodes } from "../../platform/workflow-service.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { hasAgents } from "../../workflow/has-agents.ts";

/** The node kinds and rules with which a service with these settings loads definitions. */
export interface NodeRules {
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  /** Only the names: checking a definition reads no secret. */
  readonly secretNames: readonly string[];
}

/** The service: its settings and its preset. */
export interface ServiceKind {
  readonly settings: PlatformSettings;
  readonly preset: string;
}

/** The rules, as far as they follow from the settings. Calls no provider and no tool server, and opens nothing. */
export async function readNodeRules(service: ServiceKind): Promise<NodeRules> {
  const { settings } = service;
  const types = nodeRules(workflowNodes(settings), {
    known: await knownParts(service),
    hasAgents: servesAgents(service),
    hasLinks: settings.workflow.publicUrl !== undefined,
  });
  return { types, secretNames: Object.keys(settings.workflow.secrets) };
}

/** The names of providers and tool servers, to find nodes that use unknown names. */
async function knownParts({ settings, preset }: ServiceKind): Promise<KnownParts> {
  const providers = await chooseProviders(settings, { env: process.env });
  const servers = Object.keys(settings.mcpServers);
  const tools = [runWorkflowDefinition, ...(preset === "workflow" ? [] : [credentialDefinition])];
  return {
    providers: providers.map(({ id }) => id),
    models(id) {
      const models = providers.find((provider) => provider.id === id)?.models;
      return models === "discover" ? undefined : models;
    },
    toolSources: tools.length + servers.length,
    tool: (id) => tools.find((tool) => tool.id === id),
    knowsAllTools: () => servers.length === 0,
  };
}

/** Every preset except `workflow` has agents, and also accepts agents that are added later. */
function servesAgents({ settings, preset }: ServiceKind): boolean {
  return preset !== "workflow" || hasAgents(settings);
}
