import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { Instance } from "../../api/instance.ts";
import type { Tone } from "../../blocks/StatusBadge.svelte";

export type Agent = CallResult<typeof conversationsRunsContract.agents>["agents"][number];

/** Whether this user may read and write the texts of agents. */
export function canEditAgents({ handshake: { identity, capabilities } }: Instance): boolean {
  return identity.role === "owner" && capabilities["agentDocuments"] === true;
}

/** Specification 2.10. */
const STATES: Readonly<Record<NonNullable<Agent["status"]>, { readonly tone: Tone; readonly text: string }>> = {
  online: { tone: "good", text: "Online" },
  idle: { tone: "good", text: "Idle" },
  busy: { tone: "active", text: "Busy" },
  recovery: { tone: "warn", text: "Recovering" },
  offline: { tone: "neutral", text: "Offline" },
  shutdown: { tone: "neutral", text: "Shut down" },
  error: { tone: "bad", text: "Error" },
};

export function stateOf({ status }: Agent): { readonly tone: Tone; readonly text: string } {
  return status === undefined ? { tone: "neutral", text: "Not told" } : STATES[status];
}

/** The problem with an agent's `agent.json`. The agent is not usable until it is fixed. */
export function whatIsWrong({ metadataError }: Agent): string | undefined {
  switch (metadataError) {
    case undefined:
      return undefined;
    case "missing":
      return "Its folder has no agent.json";
    case "unreadable":
      return "Its agent.json cannot be read";
    case "invalid_json":
      return "Its agent.json is not JSON";
    case "invalid_shape":
      return "Its agent.json has a missing or invalid field";
  }
}

/** Keys of an agent's `agent.json` that have no effect, as text. */
export function whatIsIgnored({ unknownKeys = [] }: Agent): string | undefined {
  if (unknownKeys.length === 0) return undefined;
  return `Its agent.json has keys without effect: ${unknownKeys.join(", ")}`;
}

const SYNC: Readonly<Record<string, string>> = {
  ahead: "ahead of its remote",
  behind: "behind its remote",
  diverged: "diverged from its remote",
  unknown: "remote not compared",
};

/** The git state of its folder, as text. `–` if it is not in a repository. */
export function gitOf({ hasGit, hasRemote, syncStatus }: Agent): string {
  if (!hasGit) return "–";
  if (!hasRemote) return "local only";
  return syncStatus === undefined ? "has a remote" : (SYNC[syncStatus] ?? syncStatus.replaceAll("_", " "));
}
