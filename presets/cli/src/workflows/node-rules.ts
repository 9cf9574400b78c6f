import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Adapter, type KnownParts, nearestWord, type Port, ports } from "@portico/core";
import { credentialDefinition } from "@portico/plugins/model-proxy/credential-tool";
import { nodeRules } from "@portico/plugins/workflow-service/definitions";
import { runWorkflowDefinition } from "@portico/plugins/workflow-service/run-workflow-tool";
import { chooseProviders, type ServedProvider } from "@portico/presets/platform/provider-choice";
import { workflowNodes } from "@portico/presets/platform/workflow-service";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { hasAgents } from "@portico/presets/workflow/has-agents";
import { ownPreset } from "../instance-stores.ts";

/** Built-in tools of every agent. */
export const AGENT_TOOLS = ["SendUserMessage", "ReadAttachment", "DelegateToAgent"];
/** Built-in tools of an instance with all services. */
export const INSTANCE_TOOLS = ["RunWorkflow", "ComputeCredential"];

type Rules = NodeRules["types"];

/** Finds unknown names in nodes of one kind. */
type Faults = (written: Readonly<Record<string, unknown>>) => readonly ports.NodeFault[];

/**
 * The rules of nodes, and rules for names of agents, workflows and tools. A service cannot refuse these names when it loads a definition, because
 * agents, workflows and tools change while it runs. Here the current ones are looked up. Names from templates are not known.
 */
export function withReferences(types: Rules, { settings, preset }: ServiceKind, workflowIds: ReadonlySet<string>): Rules {
  // Agents in another store are not looked up.
  const agents = settings.agent.documents.driver === "fs" ? agentIds(settings.agent.agentsDir) : undefined;
  const ofInstance = ["RunWorkflow", ...(preset === "workflow" ? [] : ["ComputeCredential"])];
  const isServers = (id: string) => Object.keys(settings.mcpServers).some((server) => id.startsWith(`${server}/`));
  const tool = (id: unknown, path: ports.NodeFault["path"], known: readonly string[]) =>
    typeof id === "string" && isServers(id) ? [] : missing("tool", id, path, known);
  const faults: Readonly<Record<string, Faults>> = {
    agent: ({ agent, toolIds }) => [
      ...(agents ? missing("agent", agent, ["agent"], agents) : []),
      ...(Array.isArray(toolIds) ? toolIds : []).flatMap((id, index) =>
        tool(id, ["toolIds", index], [...AGENT_TOOLS, ...ofInstance]),
      ),
    ],
    workflow: ({ workflow }) => missing("workflow", workflow, ["workflow"], [...workflowIds]),
    tool: ({ tool: id }) => tool(id, ["tool"], ofInstance),
  };
  return new Map(
    [...types].map(([type, rules]) => {
      const more = faults[type];
      return [type, more ? { ...rules, check: (written) => firstOf(rules.check?.(written) ?? [], more(written)) } : rules];
    }),
  );
}

/** Messages of the kind of node itself come first: they are more precise. */
function firstOf(own: readonly ports.NodeFault[], more: readonly ports.NodeFault[]): readonly ports.NodeFault[] {
  return own.length > 0 ? own : more;
}

function missing(what: string, id: unknown, path: ports.NodeFault["path"], known: readonly string[]): readonly ports.NodeFault[] {
  if (typeof id !== "string" || id.includes("${{") || known.includes(id)) return [];
  const nearest = nearestWord(id, known);
  return [{ path, message: `There is no ${what} "${id}"${nearest === undefined ? "" : `: did you mean "${nearest}"?`}` }];
}

function agentIds(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((name) => existsSync(join(directory, name, "agent.json")));
  } catch {
    return [];
  }
}

/** The node kinds and rules with which a service with these settings loads definitions. */
interface NodeRules {
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
