import { defineAdapter, ports } from "@portico/core";
import { readAgentText, unreadAgent } from "./agent-file.ts";

/** Options of `memoryAgents`. */
export interface MemoryAgentsOptions {
  /**
   * The content of `agent.json` by agent ID: a value, or a text that is parsed like the file; null for a folder without the file.
   * The table may be changed while the app runs.
   */
  readonly agents: ReadonlyMap<string, object | string | null>;
}

/** Agents from a program, without a folder: for tests, and for hosts that store agents elsewhere. */
export const memoryAgents = defineAdapter({
  name: "agents/memory",
  port: ports.agents,
  needs: {},
  open(_given, { agents }: MemoryAgentsOptions): ports.Agents {
    /** The parsed result of each entry, for as long as the entry is unchanged. */
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
