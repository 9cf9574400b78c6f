import { defineAdapter, ports } from "@portico/core";
import { readAgentText, unreadAgent } from "./agent-file.ts";

export interface MemoryAgentsOptions {
  /**
   * By id, what stands in its `agent.json`: a value, or a text that is read as the file would be; null for a folder without one. The table
   * may be changed while the app runs.
   */
  readonly agents: ReadonlyMap<string, object | string | null>;
}

/** Agents that a program gives, without a folder: for tests, and for hosts that have their own place for them. */
export const memoryAgents = defineAdapter({
  name: "agents/memory",
  port: ports.agents,
  needs: {},
  open(_given, { agents }: MemoryAgentsOptions): ports.Agents {
    const find = (id: string): ports.Agent | undefined => {
      const given = ports.AGENT_ID.test(id) ? agents.get(id) : undefined;
      if (given === undefined) return undefined;
      const read =
        given === null
          ? unreadAgent(id, "missing")
          : readAgentText(id, typeof given === "string" ? given : JSON.stringify(given));
      return { id, ...read, git: { hasGit: false } };
    };
    return {
      list: async () => [...agents.keys()].toSorted().flatMap((id) => find(id) ?? []),
      find: async (id) => find(id),
    };
  },
});
