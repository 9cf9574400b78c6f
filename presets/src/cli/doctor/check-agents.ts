import { type AgentTextOf, listAgentTexts } from "@portico/adapters/stores/agent-documents";
import { ports } from "@portico/core";
import { agentsAt, placeInWords } from "../../settings/documents-place.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "agents";

/** Checks that the agents' documents can be read, and what is in them. */
export async function checkAgents({ agent }: PlatformSettings): Promise<readonly Finding[]> {
  const place = agentsAt(agent);
  const words = placeInWords(place);
  try {
    const agents = await listAgentTexts(place);
    // A folder that does not exist has no agents.
    if ("dir" in place && agents.length === 0) return [];
    return [fine(ABOUT, `${agents.length} in ${words}`), ...agents.flatMap(faultsOf)];
  } catch (error) {
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    return [wrong(ABOUT, `${words} cannot be read: ${error.message}`, "correct agent.documents, or start that store")];
  }
}

function faultsOf({ id, metadataError, unknownKeys }: AgentTextOf): readonly Finding[] {
  const about = `agent ${id}`;
  return [
    ...(metadataError
      ? [wrong(about, `its agent.json is not usable: ${metadataError}`, "correct it: docs/agent.schema.json has all keys")]
      : []),
    ...(unknownKeys ? [doubtful(about, `keys of its agent.json have no effect: ${unknownKeys.join(", ")}`)] : []),
  ];
}
