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
    /** What was made of an entry, as long as it is that entry. */
    const read = new Map<string, { readonly given: object | string | null; readonly agent: ports.Agent }>();
    const find = (id: string): ports.Agent | undefined => {
      const given = ports.AGENT_ID.test(id) ? agents.get(id) : undefined;
      if (given === undefined) return undefined;
      const known = read.get(id);
      if (known?.given === given) return known.agent;
      const text =
        given === null
          ? unreadAgent(id, "missing")
          : readAgentText(id, typeof given === "string" ? given : JSON.stringify(given));
      const agent = { id, ...text, git: { hasGit: false } };
      read.set(id, { given, agent });
      return agent;
    };
    return {
      list: async () => [...agents.keys()].toSorted().flatMap((id) => find(id) ?? []),
      find: async (id) => find(id),
    };
  },
});
