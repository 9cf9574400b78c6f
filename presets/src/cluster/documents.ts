import { loopAgentEngine } from "@portico/adapters/agent-engines/loop";
import { loopSettings } from "@portico/adapters/agent-engines/loop-options";
import { documentAgents } from "@portico/adapters/agents/documents";
import { recordDocuments } from "@portico/adapters/documents/records";
import { sharedFolderDocuments } from "@portico/cluster/documents/shared-folder";
import { AGENT_DEPTH } from "@portico/adapters/stores/agent-documents";
import { DEFINITION_DEPTH } from "@portico/adapters/stores/workflow-folder";
import { type Adapter, optionsOf } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";

/** The agents of a cluster, and what executes their turns. */
export function clusterAgents({ cluster, agent }: PlatformSettings): readonly Adapter[] {
  const dir = agent.agentsDir;
  const documents =
    cluster.documents === "database"
      ? [recordDocuments({ id: "agents" }), documentAgents({})]
      : [sharedFolderDocuments({ id: "agents", dir, depth: AGENT_DEPTH }), documentAgents({ directory: dir })];
  return [...documents, loopAgentEngine(optionsOf(loopSettings, agent))];
}

/** The workflow definitions of a cluster. */
export function clusterWorkflows({ cluster, workflow }: PlatformSettings): readonly Adapter[] {
  return cluster.documents === "database"
    ? [recordDocuments({ id: "workflows" })]
    : [sharedFolderDocuments({ id: "workflows", dir: workflow.definitionsDir, depth: DEFINITION_DEPTH })];
}
