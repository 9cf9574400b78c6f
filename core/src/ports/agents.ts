import { definePort, type Port } from "../port.ts";

/** The agents of this instance: folders with an `agent.json`, which people edit at any time (open points 3). */
export interface Agents {
  /** All of them, by id, in the order of the ids' bytes; also those whose `agent.json` is missing or broken. Throws AgentsUnavailable. */
  list(): Promise<readonly Agent[]>;
  /** Undefined where there is no such folder. An id that breaks AGENT_ID is no agent's. Throws AgentsUnavailable. */
  find(id: string): Promise<Agent | undefined>;
}

export interface Agent {
  readonly id: string;
  /** What `agent.json` says; fallbacks for what it does not or not rightly say, and then `metadataError` tells why. */
  readonly definition: AgentDefinition;
  readonly metadataError?: "missing" | "unreadable" | "invalid_json" | "invalid_shape" | undefined;
  /** The folder's own git state; read without blocking, remembered for a short time. */
  readonly git: GitState;
}

export interface AgentDefinition {
  readonly name: string;
  readonly description?: string | undefined;
  /** Which agent engine runs it; default `loop`. */
  readonly engine: string;
  /** Provider configuration id, and model; default: the instance's first. */
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  readonly instructions?: string | undefined;
  /** Tool ids that its turns may use. */
  readonly tools: readonly string[];
  /** Paths below the agent's folder. */
  readonly skills: readonly string[];
  readonly heartbeat?: { readonly enabled: boolean; readonly everyMs: number; readonly prompt: string } | undefined;
  readonly core: boolean;
  readonly ui?: unknown;
  readonly avatar?: unknown;
  /** As it stands in the file: the webhook area reads and checks it. */
  readonly webhooks?: unknown;
}

export interface GitState {
  readonly hasGit: boolean;
  /** Set where there is a repository. */
  readonly hasRemote?: boolean | undefined;
  /** Set where there is a remote: how the branch stands to its upstream, as it was last fetched; `unknown` where that cannot be told. */
  readonly syncStatus?: "synced" | "ahead" | "behind" | "diverged" | "unknown" | undefined;
}

/** Open points 3: 1-64 of letters, digits, `_`, `-`. */
export const AGENT_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Thrown when the agents cannot be listed at all. */
export class AgentsUnavailable extends Error {
  override readonly name = "AgentsUnavailable";
}

export const agents: Port<Agents> = definePort<Agents>("agents");
