import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { nearestWord, type ports } from "@portico/core";
import type { NodeRules, ServiceKind } from "./node-rules.ts";

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
