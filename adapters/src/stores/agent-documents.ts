import type { Adapter } from "@portico/core";
import { loopAgentEngine, type LoopOptions } from "../agent-engines/loop.ts";
import { type AgentText, readAgentText } from "../agents/agent-file.ts";
import { documentAgents } from "../agents/documents.ts";
import { unstorageDocuments } from "../documents/unstorage.ts";
import { agentFolder } from "./agent-folder.ts";
import { type DocumentReading, type DocumentsAt, openReading } from "./documents-at.ts";

const ID = "agents";

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
  return openReading(ID, at, 2);
}

/** An agent as its `agent.json` describes it. */
export interface AgentTextOf extends AgentText {
  readonly id: string;
}

/** All agents that have an `agent.json`, without an app: for tools that check them. Throws DocumentsUnavailable. */
export async function listAgentTexts(at: DocumentsAt): Promise<readonly AgentTextOf[]> {
  const documents = await readAgentDocuments(at);
  try {
    const found: AgentTextOf[] = [];
    for (const name of await documents.list()) {
      const id = /^([^/]+)\/agent\.json$/.exec(name)?.[1];
      if (id === undefined) continue;
      const document = await documents.read(name);
      if (document) found.push({ id, ...readAgentText(id, document.text) });
    }
    return found;
  } finally {
    await documents.close();
  }
}
