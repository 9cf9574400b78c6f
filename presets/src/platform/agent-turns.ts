import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { documentAgents } from "@portico/adapters/agents/documents";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import type { Adapter } from "@portico/core";
import { userFiles } from "@portico/plugins/attachments-media/user-files";
import { agentRuntime } from "@portico/plugins/conversations-runs/agent-runtime";
import { backgroundTurns } from "@portico/plugins/conversations-runs/background-turns";
import type { PlatformSettings } from "../settings/platform.ts";
import { dataDirectory } from "./data-directory.ts";

/** An `agent.json` stands in its agent's folder; what lies deeper is the agent's own. */
const AGENT_FILE_DEPTH = 2;

/** The agents of an instance and what plays their turns, beside realtime, tools and `instanceAdapters`. */
export function agentTurns({ agent, dataDir }: Pick<PlatformSettings, "agent" | "dataDir">): readonly Adapter[] {
  const { agentsDir, webhooks } = agent;
  const { management: _, ...background } = webhooks;
  return [
    unstorageDocuments({ id: "agents", dir: agentsDir, depth: AGENT_FILE_DEPTH }),
    documentAgents({ directory: agentsDir }),
    loopAgentEngine({}),
    fileBlobs({ dir: dataDirectory(dataDir).files }),
    userFiles(),
    agentRuntime({}),
    backgroundTurns(background),
  ];
}
