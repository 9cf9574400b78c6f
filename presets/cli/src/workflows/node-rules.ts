import { type Adapter, type KnownParts, type Port, ports } from "@portico/core";
import { credentialDefinition } from "@portico/plugins/model-proxy/credential-tool";
import { nodeRules } from "@portico/plugins/workflow-service/definitions";
import { runWorkflowDefinition } from "@portico/plugins/workflow-service/run-workflow-tool";
import { chooseProviders, type ServedProvider } from "@portico/presets/platform/provider-choice";
import { workflowNodes } from "@portico/presets/platform/workflow-service";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { hasAgents } from "@portico/presets/workflow/has-agents";
import { ownPreset } from "../instance-stores.ts";

/** The node kinds and rules with which a service with these settings loads definitions. */
export interface NodeRules {
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  /** Only the names: checking a definition reads no secret. */
  readonly secretNames: readonly string[];
}

/** The service: its settings and its preset. */
export interface ServiceKind {
  readonly settings: PlatformSettings;
  /** Default: the preset of the program that was called, or the one that `portico start` starts. */
  readonly preset?: string | undefined;
}

/** The rules, as far as they follow from the settings, and the preset of the program that was called. Calls no provider and no tool server, and opens nothing. */
export async function readNodeRules(service: ServiceKind): Promise<NodeRules> {
  const { settings } = service;
  const providers = await chooseProviders(settings, { env: process.env });
  const own = service.preset === undefined ? ownPreset(settings, providers)?.adapters : undefined;
  const filling = (port: Port<any>) => own?.filter(({ spec }) => spec.port.id === port.id) ?? [];
  const types = nodeRules(own ? filling(ports.workflowNodes) : workflowNodes(settings), {
    known: knownParts(service, providers, filling),
    hasAgents: own ? filling(ports.agents).length > 0 : servesAgents(service),
    hasLinks: settings.workflow.publicUrl !== undefined,
  });
  return { types, secretNames: Object.keys(settings.workflow.secrets) };
}

/** The names of providers and tool servers, to find nodes that use unknown names. */
function knownParts(
  { settings, preset }: ServiceKind,
  providers: readonly ServedProvider[],
  filling: (port: Port<any>) => readonly Adapter[],
): KnownParts {
  const tools = [runWorkflowDefinition, ...(preset === "workflow" ? [] : [credentialDefinition])];
  // The adapters of a preset's own: which models and tools they have is known only when they are open.
  const ownModels = filling(ports.models).filter((adapter) => !providers.some((each) => each.adapter === adapter));
  const sources = Math.max(filling(ports.tools).length, Object.keys(settings.mcpServers).length);
  return {
    providers: [...providers.map(({ id }) => id), ...ownModels.map(idOf)],
    models(id) {
      const models = providers.find((provider) => provider.id === id)?.models;
      return models === "discover" ? undefined : models;
    },
    toolSources: tools.length + sources,
    tool: (id) => tools.find((tool) => tool.id === id),
    knowsAllTools: () => sources === 0,
  };
}

/** By convention, a provider's id is the option `id` of its adapter. */
function idOf({ name, options }: Adapter): string {
  const id = typeof options === "object" && options !== null && "id" in options ? options.id : undefined;
  return typeof id === "string" ? id : name;
}

/** Every preset except `workflow` has agents, and also accepts agents that are added later. */
function servesAgents({ settings, preset }: ServiceKind): boolean {
  return preset !== "workflow" || hasAgents(settings);
}
