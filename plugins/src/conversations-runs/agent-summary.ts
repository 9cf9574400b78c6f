import type { ports } from "@portico/core";

/** One agent as the list shows it (specification 2.10). */
export function toAgentSummary({ id, definition, metadataError, git }: ports.Agent, isBusy: boolean) {
  const { name, description, engine, skills, tools, heartbeat, core, ui, avatar } = definition;
  return {
    id,
    name,
    ...(description !== undefined && { description }),
    engine,
    skillsCount: skills.length,
    toolsCount: tools.length,
    heartbeatEnabled: heartbeat?.enabled ?? false,
    hasGit: git.hasGit,
    ...(git.hasRemote !== undefined && { hasRemote: git.hasRemote }),
    ...(git.syncStatus !== undefined && { syncStatus: git.syncStatus }),
    isCoreAgent: core,
    // A broken agent.json leaves fallback values, with which nobody should work.
    status: metadataError ? ("error" as const) : isBusy ? ("busy" as const) : ("idle" as const),
    ...(metadataError && { metadataError }),
    ...(ui !== undefined && { ui }),
    ...(avatar !== undefined && { avatar }),
  };
}
