import type { ports } from "@portico/core";
import { findAgentProblems } from "../runtime/agent-problems.ts";
import { readSkills } from "../skills/agent-skills.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists the agents. */
export function listAgents({
  agents,
  agentEngines,
  models,
  tools,
  schedules,
  runtime: { openTurns, checks },
}: ConversationServices): ConversationHandlers["agents"] {
  return async ({ signal, who }) => {
    const problemsOf = who.role === "owner" ? findAgentProblems({ agents, tools, checks }, signal) : undefined;
    const missingOf = findMissingParts(
      { engines: agentEngines, models: models.filter(({ servesAgents }) => !servesAgents) },
      signal,
    );
    const busy = openTurns.busyAgents();
    const summaries = [];
    for (const agent of await agents.list()) {
      const { length: skillsCount } = await readSkills(agents, agent);
      const missing = agent.metadataError ? undefined : await missingOf(agent.definition);
      const problems = agent.metadataError ? problemsOf && faultsOf(agent) : await problemsOf?.(agent);
      const hasSchedules = schedules !== undefined;
      summaries.push(toAgentSummary(agent, { isBusy: busy.has(agent.id), skillsCount, hasSchedules, missing, problems }));
    }
    return { agents: summaries };
  };
}

/** Of a file that cannot be read. */
function faultsOf({ fault }: ports.Agent): readonly ports.AgentProblem[] {
  return fault === undefined ? [] : [{ at: "document", name: "agent.json", message: fault }];
}

/** One agent as the list shows it (specification 2.10). */
export function toAgentSummary(
  { id, definition, metadataError, unknownKeys, git }: ports.Agent,
  {
    isBusy,
    skillsCount,
    hasSchedules,
    missing,
    problems = [],
  }: {
    readonly isBusy: boolean;
    readonly skillsCount: number;
    readonly hasSchedules: boolean;
    readonly missing: MissingPart | undefined;
    /** For the owner alone. */
    readonly problems: readonly ports.AgentProblem[] | undefined;
  },
) {
  const { name, description, engine, tools, core, ui, avatar } = definition;
  return {
    id,
    name,
    ...(description !== undefined && { description }),
    engine,
    skillsCount,
    toolsCount: tools.length,
    // What nothing acts on is not claimed.
    heartbeatEnabled: hasSchedules && (definition.heartbeat?.enabled ?? false),
    hasGit: git.hasGit,
    ...(git.hasRemote !== undefined && { hasRemote: git.hasRemote }),
    ...(git.syncStatus !== undefined && { syncStatus: git.syncStatus }),
    isCoreAgent: core,
    // With a broken agent.json, the agent has fallback values, which must not be used for turns.
    status: metadataError ? ("error" as const) : isBusy ? ("busy" as const) : ("idle" as const),
    ...(metadataError && { metadataError }),
    ...(missing && { missing }),
    ...(problems.length > 0 && { problems: [...problems] }),
    ...(unknownKeys && { unknownKeys: [...unknownKeys] }),
    ...(ui !== undefined && { ui }),
    ...(avatar !== undefined && { avatar }),
  };
}

/** What the turns of an agent need and the instance does not have. */
type MissingPart = "engine" | "provider" | "model";

/** How long the lists of agents wait for the providers' lists of models. */
const LIST_MS = 1_000;

/**
 * Says of agents what their turns would lack. A model that no provider lists counts as missing only if the agent names no provider: otherwise
 * the turn asks the provider. Providers are asked for their models at most once. A list that cannot be read proves nothing.
 */
function findMissingParts(
  { engines, models }: { readonly engines: readonly ports.AgentEngine[]; readonly models: readonly ports.ModelProvider[] },
  signal: AbortSignal,
): (agent: ports.AgentDefinition) => Promise<MissingPart | undefined> {
  let lists: Promise<readonly (readonly string[] | undefined)[]> | undefined;
  const readLists = () => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]);
    return Promise.all(models.map((provider) => provider.listModels(limited).catch(() => undefined)));
  };

  return async ({ engine, provider, model }) => {
    if (engines.every(({ id }) => id !== engine)) return "engine";
    if (models.length === 0 || (provider !== undefined && models.every(({ id }) => id !== provider))) return "provider";
    if (model === undefined || provider !== undefined) return undefined;
    lists ??= readLists();
    return (await lists).every((list) => list !== undefined && !list.includes(model)) ? "model" : undefined;
  };
}
