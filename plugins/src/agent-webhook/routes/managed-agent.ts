import { ports } from "@portico/core";
import { managementErrors } from "../errors.ts";

/** The agent that a path names. Throws `invalid_agent_id`, and `agent_not_found` also for a folder without an `agent.json`. */
export async function managedAgent(agents: ports.Agents, id: string): Promise<ports.Agent> {
  if (!ports.AGENT_ID.test(id)) throw managementErrors.invalid_agent_id();
  const agent = await agents.find(id);
  if (!agent || agent.metadataError === "missing") throw managementErrors.agent_not_found();
  return agent;
}
