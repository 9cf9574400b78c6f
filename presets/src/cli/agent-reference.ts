import { agentSchema } from "@portico/adapters/agents/agent-schema";

/** The published JSON Schema of `agent.json`. */
export function publishedAgentSchema(): string {
  return `${JSON.stringify(agentSchema(), null, 2)}\n`;
}
