import { readdirSync } from "node:fs";
import type { PlatformSettings } from "../settings/platform.ts";

/**
 * Whether an instance of preset `workflow` has agents: their folder has at least one at the start. Without agents, definitions with `agent`
 * nodes are refused when they are loaded, not when a run reaches that node.
 */
export function hasAgents({ agent }: Pick<PlatformSettings, "agent">): boolean {
  // A preset is built before any store is opened. Another store than a folder may have agents.
  if (agent.documents.driver !== "fs") return true;
  try {
    return readdirSync(agent.agentsDir, { withFileTypes: true }).some((entry) => !entry.isFile() && !entry.name.startsWith("."));
  } catch {
    return false;
  }
}
