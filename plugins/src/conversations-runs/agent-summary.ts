import type { ports } from "@portico/core";
import type { MissingPart } from "./missing-part.ts";

/** One agent as the list shows it (specification 2.10). */
export function toAgentSummary(
  { id, definition, metadataError, unknownKeys, git }: ports.Agent,
  {
    isBusy,
    skillsCount,
    hasSchedules,
    missing,
    problems = [],
  }: {
    readonly isBusy: boolean;
    readonly skillsCount: number;
    readonly hasSchedules: boolean;
    readonly missing: MissingPart | undefined;
    /** For the owner alone. */
    readonly problems: readonly ports.AgentProblem[] | undefined;
  },
) {
  const { name, description, engine, tools, core, ui, avatar } = definition;
  return {
    id,
    name,
    ...(description !== undefined && { description }),
    engine,
    skillsCount,
    toolsCount: tools.length,
    // What nothing acts on is not claimed.
    heartbeatEnabled: hasSchedules && (definition.heartbeat?.enabled ?? false),
    hasGit: git.hasGit,
    ...(git.hasRemote !== undefined && { hasRemote: git.hasRemote }),
    ...(git.syncStatus !== undefined && { syncStatus: git.syncStatus }),
    isCoreAgent: core,
    // With a broken agent.json, the agent has fallback values, which must not be used for turns.
    status: metadataError ? ("error" as const) : isBusy ? ("busy" as const) : ("idle" as const),
    ...(metadataError && { metadataError }),
    ...(missing && { missing }),
    ...(problems.length > 0 && { problems: [...problems] }),
    ...(unknownKeys && { unknownKeys: [...unknownKeys] }),
    ...(ui !== undefined && { ui }),
    ...(avatar !== undefined && { avatar }),
  };
}
