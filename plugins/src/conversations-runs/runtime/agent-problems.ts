import type { ports } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import { builtInDefinitions } from "../turns/built-in-tools.ts";
import { MEMORY_TOOLS } from "../memory/memory-tools.ts";
import { READ_RESOURCE } from "../turns/read-resource.ts";
import { READ_SKILL } from "../skills/read-skill.ts";
import { readSkills } from "../skills/agent-skills.ts";
import { problemsOf, toolsOf } from "../turns/tool-sources.ts";

/** How long the lists of agents wait for the lists of tools, and for checks of schemas. */
const LIST_MS = 1_000;

/** What is asked of a source of tools. */
export interface AskedToolSource extends Pick<ports.ToolSource, "id" | "owns" | "problems"> {
  list(signal: AbortSignal): Promise<readonly Pick<ports.ToolDefinition, "id">[]>;
}

/** What agents' problems are found with. */
export interface AgentProblemsGiven {
  readonly agents: Pick<ports.Agents, "skillFile">;
  readonly tools: readonly AskedToolSource[];
  readonly checks: SchemaChecks;
}

/** Finds what an agent's `agent.json` names and its turns do not get. Lists of tools are read at most once. */
export type AgentProblems = (agent: ports.CheckedAgent) => Promise<readonly ports.AgentProblem[]>;

/**
 * The problems of agents now. Sources of tools that do not answer within a second count as away. A schema that is not checked by then has no
 * problem.
 */
export function findAgentProblems({ agents, tools: sources, checks }: AgentProblemsGiven, signal: AbortSignal): AgentProblems {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]);
  const lists = new Map<AskedToolSource, Promise<readonly Pick<ports.ToolDefinition, "id">[] | undefined>>();
  const listOf = (source: AskedToolSource) => {
    const list = lists.get(source) ?? toolsOf(source, limited).catch(() => undefined);
    lists.set(source, list);
    return list;
  };

  const toolProblem = async (
    toolId: string,
    { memory, resources = [] }: ports.CheckedAgent["definition"],
  ): Promise<string | undefined> => {
    if (MEMORY_TOOLS.includes(toolId)) return memory ? undefined : "The agent has no memory: `memory` switches it on";
    if (toolId === READ_RESOURCE)
      return resources.length > 0 ? undefined : "The agent has no resources: name them in `resources`";
    if (toolId === READ_SKILL || builtInDefinitions.some(({ id }) => id === toolId)) return undefined;
    const asked = sources.filter((source) => source.owns?.(toolId) ?? true);
    const away: string[] = [];
    for (const source of asked) {
      const list = await listOf(source);
      const problems = problemsOf(source);
      const ofTool = problems.find((problem) => problem.toolId === toolId);
      if (ofTool) return ofTool.message;
      if (list?.some(({ id }) => id === toolId)) return undefined;
      const ofSource = problems.find(({ kind }) => kind === "unavailable");
      if (ofSource && source.owns) return ofSource.message;
      if (!list) away.push(source.id);
    }
    return away.length > 0 ? `Tools of ${away.join(", ")} cannot be listed now` : "No source has a tool with this ID";
  };

  /** Whether a source has it is not known before it is read. */
  const sourceProblem = (name: string): string | undefined => {
    const source = sources.find((each) => each.owns?.(name));
    return source ? problemsOf(source).find(({ kind }) => kind === "unavailable")?.message : "No MCP server has this name";
  };

  return async ({ id, definition }) => {
    const problems: ports.AgentProblem[] = [];
    for (const name of new Set(definition.tools)) {
      const message = await toolProblem(name, definition);
      if (message !== undefined) problems.push({ at: "tools", name, message });
    }
    for (const at of ["resources", "prompts"] as const) {
      for (const name of new Set(definition[at])) {
        const message = sourceProblem(name);
        if (message !== undefined) problems.push({ at, name, message });
      }
    }
    await readSkills(agents, { id, definition }, (name, message) => problems.push({ at: "skills", name, message }));
    const { outputSchema } = definition;
    const found = outputSchema && (await checks.inspect(outputSchema, { signal: limited }).catch(() => undefined));
    if (found && "unusable" in found) problems.push({ at: "outputSchema", name: "outputSchema", message: found.unusable });
    return problems;
  };
}
