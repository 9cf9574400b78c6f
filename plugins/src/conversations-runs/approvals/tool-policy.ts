import type { ports } from "@portico/core";

/** The rules for the tools of one turn. */
export interface TurnPolicy {
  /** Those of the instance's configuration. */
  readonly instance: ports.ToolRules;
  /** Those of the agent's `agent.json`. */
  readonly agent: ports.ToolPolicy | undefined;
  readonly isBackground: boolean;
}

export interface Permitted {
  readonly permission: ports.ToolPermission;
  /** Whether an `ask` may make the turn wait. Otherwise it is refused. */
  readonly mayWait: boolean;
}

type Tool = Pick<ports.ToolDefinition, "id" | "riskLevel" | "requiresConfirmation">;

/** From the most permissive to the strictest. */
const ORDER: readonly ports.ToolPermission[] = ["allow", "ask", "deny"];

/**
 * Whether a tool may run in a turn. The agent's rules replace the default of the tool. The stricter one of the agent's and the instance's
 * rules counts, so that a file that an agent may write never permits more than the configuration.
 */
export function permissionOf(tool: Tool, { instance, agent, isBackground }: TurnPolicy): Permitted {
  const inBackground = isBackground ? ruleOf(tool, agent?.background) : undefined;
  const byAgent = inBackground ?? ruleOf(tool, agent);
  const byInstance = ruleOf(tool, instance);
  const own = byAgent ?? byInstance ?? (tool.requiresConfirmation ? "ask" : "allow");
  const permission = ORDER[Math.max(ORDER.indexOf(own), ORDER.indexOf(byInstance ?? "allow"))]!;
  return { permission, mayWait: !isBackground || inBackground === "ask" };
}

function ruleOf({ id, riskLevel }: Tool, rules: ports.ToolRules | undefined): ports.ToolPermission | undefined {
  const { tools = {}, riskLevels = {} } = rules ?? {};
  return Object.hasOwn(tools, id) ? tools[id] : riskLevels[riskLevel];
}
