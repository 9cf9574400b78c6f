// Run after a change of the fields of `agent.json`: `npm run docs:agent`.
import { agentSchema } from "@portico/adapters/agents/agent-schema";
import { publishedSchemaText, writePublishedSchema } from "./published-schema.ts";

/** The published JSON Schema of `agent.json`. */
export function publishedAgentSchema(): string {
  return publishedSchemaText("agent", agentSchema());
}

if (import.meta.main) writePublishedSchema("agent", publishedAgentSchema());
