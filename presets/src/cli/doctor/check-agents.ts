import { readAgentDocuments } from "@portico/adapters/stores/agent-documents";
import { ports } from "@portico/core";
import { agentsAt, placeInWords } from "../../platform/documents-place.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "agents";

/** Checks that the agents' documents can be read, if they are in another store than a folder. */
export async function checkAgents({ agent }: PlatformSettings): Promise<readonly Finding[]> {
  const place = agentsAt(agent);
  if ("dir" in place) return [];
  const words = placeInWords(place);
  try {
    const documents = await readAgentDocuments(place);
    const names = await documents.list().finally(() => documents.close());
    const count = names.filter((name) => /^[^/]+\/agent\.json$/.test(name)).length;
    return [fine(ABOUT, `${count} in ${words}`)];
  } catch (error) {
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    return [wrong(ABOUT, `${words} cannot be read: ${error.message}`, "correct agent.documents, or start that store")];
  }
}
