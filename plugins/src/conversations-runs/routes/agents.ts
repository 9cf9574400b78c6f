import type { ports } from "@portico/core";
import { findAgentProblems } from "../agent-problems.ts";
import { findMissingParts, type MissingPart } from "../missing-part.ts";
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
    const missingOf = findMissingParts({ engines: agentEngines, models }, signal);
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
