import { agentSchema } from "@portico/adapters/agents/agent-schema";
import { publishedSchemaText } from "./published-schema.ts";

/** The published JSON Schema of `agent.json`. */
export function publishedAgentSchema(): string {
  return publishedSchemaText("agent", agentSchema());
}
