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

export function stateOf({ status, missing }: Agent): { readonly tone: Tone; readonly text: string } {
  if (missing !== undefined) return { tone: "bad", text: "Cannot run" };
  return status === undefined ? { tone: "neutral", text: "Not told" } : STATES[status];
}

const BROKEN: Readonly<Record<NonNullable<Agent["metadataError"]>, string>> = {
  missing: "Its folder has no agent.json",
  unreadable: "Its agent.json cannot be read",
  invalid_json: "Its agent.json is not JSON",
  invalid_shape: "Its agent.json has a missing or invalid field",
};
const MISSING: Readonly<Record<NonNullable<Agent["missing"]>, string>> = {
  engine: "This instance does not have its engine",
  provider: "This instance does not have its provider",
  model: "No provider of this instance has its model",
};

/** Why the agent's turns fail, and what its owner can do. */
export function whatIsWrong({
  metadataError,
  missing,
}: Agent): { readonly text: string; readonly remedy: string | undefined } | undefined {
  if (metadataError !== undefined) return { text: BROKEN[metadataError], remedy: undefined };
  if (missing === undefined) return undefined;
  const where = missing === "engine" ? "install it" : missing === "provider" ? "configure it" : "add it to a provider";
  return { text: MISSING[missing], remedy: `Choose another ${missing} in its agent.json, or ${where} in this instance.` };
}

/** Keys of an agent's `agent.json` that have no effect, as text. */
export function whatIsIgnored({ unknownKeys = [] }: Agent): string | undefined {
  if (unknownKeys.length === 0) return undefined;
  return `Its agent.json has keys without effect: ${unknownKeys.join(", ")}`;
}

/** What its `agent.json` names and its turns do not get, as sentences. The service tells them to the owner alone. */
export function whatIsNotOffered({ problems = [] }: Agent): readonly string[] {
  return problems.map(({ at, name, message }) => (at === "outputSchema" ? `outputSchema: ${message}` : `${name}: ${message}`));
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
