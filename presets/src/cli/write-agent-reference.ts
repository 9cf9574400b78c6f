// Run after a change of the fields of `agent.json`: `npm run docs:agent`.
import { writeFileSync } from "node:fs";
import { publishedAgentSchema } from "./agent-reference.ts";

writeFileSync(new URL("../../../docs/agent.schema.json", import.meta.url), publishedAgentSchema());
