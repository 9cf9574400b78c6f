import { toAgentSummary } from "../agent-summary.ts";
import { readSkills } from "../skills/agent-skills.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists the agents. */
export function listAgents({ agents, schedules, runtime: { busy } }: ConversationServices): ConversationHandlers["agents"] {
  return async () => {
    const summaries = [];
    for (const agent of await agents.list()) {
      const { length: skillsCount } = await readSkills(agents, agent);
      summaries.push(toAgentSummary(agent, { isBusy: busy.has(agent.id), skillsCount, hasSchedules: schedules !== undefined }));
    }
    return { agents: summaries };
  };
}
