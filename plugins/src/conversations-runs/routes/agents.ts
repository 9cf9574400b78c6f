import { toAgentSummary } from "../agent-summary.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists the agents. */
export function listAgents({ agents, runtime: { busy } }: ConversationServices): ConversationHandlers["agents"] {
  return async () => ({ agents: (await agents.list()).map((agent) => toAgentSummary(agent, busy.has(agent.id))) });
}
