import { type Adapter, ports } from "@portico/core";
import { loopAgentEngine, type LoopOptions } from "../agent-engines/loop.ts";
import { agentCopies } from "../agents/agent-copies.ts";
import { type AgentText, readAgentText, unreadAgent } from "../agents/agent-file.ts";
import { documentAgents } from "../agents/documents.ts";
import { unstorageDocuments } from "../documents/unstorage.ts";
import { agentFolder } from "./agent-folder.ts";
import { type DocumentReading, type DocumentsAt, openReading } from "./documents-at.ts";

const ID = "agents";
/** Maximum segments of an agent's document that is listed and watched: deeper files are read when they are asked for. */
export const AGENT_DEPTH = 2;

/**
 * `agentFolder` for a folder, and the same for agents whose documents `ID/agent.json` are in another store. These have no git state. `loop` is for
 * the engine.
 */
export function agentDocuments(at: DocumentsAt, loop: LoopOptions = {}): readonly Adapter[] {
  if ("dir" in at) return agentFolder({ ...at, loop });
  return [unstorageDocuments({ id: ID, ...at }), documentAgents({}), loopAgentEngine(loop)];
}

/** The same documents, for reading without an app. Throws DocumentsUnavailable. */
export function readAgentDocuments(at: DocumentsAt): Promise<DocumentReading> {
  return openReading(ID, at, AGENT_DEPTH);
}

/**
 * The documents that belong in a copy of the agents, for reading without an app: each `agent.json`, and the files of the skills that it lists.
 * `leftOut` is told the files that are no text or over 1 MiB. Throws DocumentsUnavailable.
 */
export async function readAgentCopies(at: DocumentsAt, leftOut?: (name: string) => void): Promise<DocumentReading> {
  const documents = await readAgentDocuments(at);
  return { ...agentCopies({ documents, directory: "dir" in at ? at.dir : undefined, leftOut }), close: () => documents.close() };
}

/** The same for the agents of an app. `directory` is their folder, if they are files. */
export { agentCopies, type AgentCopiesGiven } from "../agents/agent-copies.ts";

/** Reads a file of an agent's skill, without an app. */
export { readSkillFile } from "../agents/skill-file.ts";

/** What is wrong in the text of an `agent.json`, as its readers see it. */
export { checkAgentText } from "../agents/check-agent-text.ts";

/** An agent as its `agent.json` describes it. */
export interface AgentTextOf extends AgentText {
  readonly id: string;
  /** The `agent.json` itself. */
  readonly text: string;
}

/** All agents that have an `agent.json`, without an app: for tools that check them. Throws DocumentsUnavailable. */
export async function listAgentTexts(at: DocumentsAt): Promise<readonly AgentTextOf[]> {
  const documents = await readAgentDocuments(at);
  try {
    const found: AgentTextOf[] = [];
    for (const name of await documents.list()) {
      const id = /^([^/]+)\/agent\.json$/.exec(name)?.[1];
      if (id === undefined) continue;
      const document = await documents.read(name).catch((error: unknown) => {
        // One file that is not UTF-8 text must not hide the other agents.
        if (!(error instanceof ports.DocumentsUnavailable) || error.fault === undefined) throw error;
        found.push({ id, text: "", ...unreadAgent(id, "unreadable", error.fault) });
        return undefined;
      });
      if (document) found.push({ id, text: document.text, ...readAgentText(id, document.text) });
    }
    return found;
  } finally {
    await documents.close();
  }
}
