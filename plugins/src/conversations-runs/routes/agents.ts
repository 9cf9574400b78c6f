import type { ports } from "@portico/core";
import { findAgentProblems } from "../agent-problems.ts";
import { toAgentSummary } from "../agent-summary.ts";
import { findMissingParts } from "../missing-part.ts";
import { readSkills } from "../skills/agent-skills.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists the agents. */
export function listAgents({
  agents,
  agentEngines,
  models,
  tools,
  schedules,
  runtime: { busy, checks },
}: ConversationServices): ConversationHandlers["agents"] {
  return async ({ signal, who }) => {
    const problemsOf = who.role === "owner" ? findAgentProblems({ agents, tools, checks }, signal) : undefined;
    const missingOf = findMissingParts({ engines: agentEngines, models }, signal);
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
