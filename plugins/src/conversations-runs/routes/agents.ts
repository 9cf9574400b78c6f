import { toAgentSummary } from "../agent-summary.ts";
import { findMissingParts } from "../missing-part.ts";
import { readSkills } from "../skills/agent-skills.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists the agents. */
export function listAgents({
  agents,
  agentEngines,
  models,
  schedules,
  runtime: { busy },
}: ConversationServices): ConversationHandlers["agents"] {
  return async ({ signal }) => {
    const missingOf = findMissingParts({ engines: agentEngines, models }, signal);
    const summaries = [];
    for (const agent of await agents.list()) {
      const { length: skillsCount } = await readSkills(agents, agent);
      const missing = agent.metadataError ? undefined : await missingOf(agent.definition);
      const hasSchedules = schedules !== undefined;
      summaries.push(toAgentSummary(agent, { isBusy: busy.has(agent.id), skillsCount, hasSchedules, missing }));
    }
    return { agents: summaries };
  };
}
