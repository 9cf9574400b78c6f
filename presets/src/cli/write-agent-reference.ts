// Run after a change of the fields of `agent.json`: `npm run docs:agent`.
import { publishedAgentSchema } from "./agent-reference.ts";
import { writePublishedSchema } from "./write-published-schema.ts";

writePublishedSchema("agent", publishedAgentSchema());
