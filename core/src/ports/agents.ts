import { definePort, type Port } from "../grammar/port.ts";
import type { Document } from "./documents.ts";
import type { ScheduleOverlap, ScheduleTiming } from "./schedules.ts";
import type { RiskLevel } from "./tools.ts";

/** The agents of this instance: folders with an `agent.json`, which people edit at any time (open points 3). */
export interface Agents {
  /**
   * All agents by ID, in the byte order of the IDs. Agents with a missing or broken `agent.json` are included. Throws
   * AgentsUnavailable.
   */
  list(options?: ListAgents): Promise<readonly Agent[]>;
  /** Undefined if the folder does not exist, or if the ID does not match AGENT_ID. Throws AgentsUnavailable. */
  find(id: string): Promise<Agent | undefined>;
  /**
   * The text of a file of a skill. `skill` is a path below the agent's folder, `file` a path below the skill's folder. Undefined for a
   * missing file, and for a path or a link that leads out of the skill's folder. Throws AgentsUnavailable if the file cannot be read, is not
   * UTF-8 text, or exceeds SKILL_FILE_BYTES. Absent: these agents have no skills.
   */
  skillFile?(id: string, skill: string, file: string): Promise<string | undefined>;
  /**
   * Paths below the agent's folder of the folders with a `SKILL.md`, in the byte order of the paths, at most 200, whether its `agent.json`
   * names them or not. For editors. Empty if the folder does not exist, or if the ID does not match AGENT_ID. Throws AgentsUnavailable. Absent: as for
   * `skillFile`, or not known.
   */
  skillPaths?(id: string): Promise<readonly string[]>;
  /** The texts of the agents, for editors. Absent: these agents are defined elsewhere, for example by a program. */
  readonly texts?: AgentTexts | undefined;
}

/**
 * The texts of `agent.json`, for an owner who edits them. Functions throw TypeError for an id that does not match AGENT_ID, and
 * DocumentsUnavailable.
 */
export interface AgentTexts {
  /** The JSON Schema of a text, for editors. */
  schema(): Readonly<Record<string, unknown>>;
  /** Undefined for an agent without a text. */
  read(id: string): Promise<Document | undefined>;
  /** Everything in a text that agents do not understand. A text without errors becomes an agent without `metadataError`. */
  check(text: string): readonly AgentTextProblem[];
  /**
   * Create or replace the text of an agent. `expected` is the version that was read, or `"absent"`. When this resolves, the text is durable,
   * and `find` has the changed agent. Throws DocumentConflict if the version is another one, and AgentTextsReadOnly.
   */
  write(id: string, text: string, expected: string): Promise<Document>;
  /**
   * Remove the text of an agent, and its folder if nothing else is in it. True if the text existed. Throws DocumentConflict and
   * AgentTextsReadOnly.
   */
  remove(id: string, expected: string): Promise<boolean>;
}

/** A fault in the text of an agent. Its message has no values of the text. */
export interface AgentTextProblem {
  /** Warnings concern keys that have no effect. */
  readonly severity: "error" | "warning";
  /** The keys and indexes of the wrong value. Empty for the whole text. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Maximum size of a skill's file in bytes. */
export const SKILL_FILE_BYTES = 1024 * 1024;

/** Something that an agent's `agent.json` names, and that its turns do not get, or not as it says. */
export interface AgentProblem {
  /** The key of `agent.json`, or `document` for the file itself. */
  readonly at: "tools" | "skills" | "resources" | "prompts" | "outputSchema" | "document";
  /** The value that the key names: the ID of a tool, a resource or a prompt, or a skill's path; the name of the file. */
  readonly name: string;
  /** The reason, for the agent's owner. */
  readonly message: string;
}

/** The parts of an agent whose problems can be found. */
export interface CheckedAgent {
  readonly id: string;
  readonly definition: Pick<AgentDefinition, "tools" | "skills" | "resources" | "prompts" | "outputSchema" | "memory">;
}

/** What a list of agents contains. */
export interface ListAgents {
  /** False: git states are not looked up, and say `hasGit: false`. For callers that list often. Default: true. */
  readonly withGit?: boolean | undefined;
}

/** An agent of the instance. */
export interface Agent {
  readonly id: string;
  /** The content of `agent.json`. Missing or invalid values have fallbacks; `metadataError` then says why. */
  readonly definition: AgentDefinition;
  readonly metadataError?: "missing" | "unreadable" | "invalid_json" | "invalid_shape" | undefined;
  /** What is wrong with an unreadable file itself, as the end of a sentence: `is UTF-16 text: save it as UTF-8`. */
  readonly fault?: string | undefined;
  /** Keys of `agent.json` that have no meaning, by their names. At most 20. */
  readonly unknownKeys?: readonly string[] | undefined;
  /** The git state of the folder. Read without blocking, and cached for a short time. */
  readonly git: GitState;
}

/** The definition of an agent. */
export interface AgentDefinition {
  readonly name: string;
  readonly description?: string | undefined;
  /** Which agent engine runs it; default `loop`. */
  readonly engine: string;
  /** Provider configuration id, and model; default: the instance's first. */
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
  readonly instructions?: string | undefined;
  /** What a turn does with an answer that was cut at its token limit: end with it (the default), or ask the model to continue. */
  readonly onMaxTokens?: "stop" | "continue" | undefined;
  /** Sampling temperature of its model calls, 0-2. */
  readonly temperature?: number | undefined;
  /** Maximum tokens of an answer. Default: the model's own limit. */
  readonly maxOutputTokens?: number | undefined;
  /** How much the model thinks before it answers. Default: the model's own. */
  readonly effort?: AgentEffort | undefined;
  /** Texts at which an answer ends. */
  readonly stop?: readonly string[] | undefined;
  /** Maximum number of model calls of a turn, 1-100, where the caller gives none. */
  readonly maxTurns?: number | undefined;
  /** JSON Schema of its final answer, which then is JSON. */
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** What its model calls contain; each absent field: as the engine's options say. */
  readonly context?: AgentContext | undefined;
  /** Limits of its turns. The instance's limits count, too. */
  readonly limits?: AgentLimits | undefined;
  /** Tool ids that its turns may use. */
  readonly tools: readonly string[];
  /** Which of its tools need a person's approval. The instance's rules count, too: the stricter one wins. */
  readonly toolPolicy?: ToolPolicy | undefined;
  /** Paths below the agent's folder. */
  readonly skills: readonly string[];
  /** What it may remember of each user across conversations. Absent: nothing. */
  readonly memory?: AgentMemory | undefined;
  /** IDs of documents of its sources of tools, which its turns may read. */
  readonly resources?: readonly string[] | undefined;
  /** IDs of templates of messages, which its users may choose. `source/*`: all of one source. */
  readonly prompts?: readonly string[] | undefined;
  /** When it works by itself (extension). */
  readonly schedules?: readonly AgentSchedule[] | undefined;
  readonly heartbeat?: { readonly enabled: boolean; readonly everyMs: number; readonly prompt: string } | undefined;
  /** Whether the instance's MCP server offers it as a tool. */
  readonly mcp?: boolean | undefined;
  readonly core: boolean;
  readonly ui?: unknown;
  readonly avatar?: unknown;
  /** Unparsed content of the file. The webhook area reads and checks it. */
  readonly webhooks?: unknown;
}

/** The memory of an agent. Default of each bound: as the runtime of turns says. */
export interface AgentMemory {
  /** Documents of each user. */
  readonly maxDocuments?: number | undefined;
  /** Characters of each document. */
  readonly maxCharacters?: number | undefined;
  /** What the model gets of it with its instructions: names and first lines (the default), whole documents up to a budget, or nothing. */
  readonly inPrompt?: "index" | "documents" | "nothing" | undefined;
}

/** Background turns of an agent at planned times. */
export interface AgentSchedule {
  /** Unique in its agent: 1-64 letters, digits, `_`, `-`. `heartbeat` is taken. */
  readonly name: string;
  readonly timing: ScheduleTiming;
  readonly prompt: string;
  readonly enabled: boolean;
  /** The tools that its turns may use. Default: those of the agent. */
  readonly toolIds?: readonly string[] | undefined;
  readonly maxTurns?: number | undefined;
  readonly jitterMs?: number | undefined;
  readonly catchUp?: number | undefined;
  /** Default: `queue`. */
  readonly overlap?: ScheduleOverlap | undefined;
}

/** Whether a tool runs: at once, after a person's approval of each call, or never. */
export type ToolPermission = "allow" | "ask" | "deny";

/** Permissions of tools. The one of a tool comes before the one of its risk level. */
export interface ToolRules {
  /** By tool id. */
  readonly tools?: Readonly<Record<string, ToolPermission>> | undefined;
  readonly riskLevels?: Readonly<Partial<Record<RiskLevel, ToolPermission>>> | undefined;
}

/** An agent's permissions of tools. Tools without one run at once, or, with `requiresConfirmation`, after an approval. */
export interface ToolPolicy extends ToolRules {
  /** Permissions in background turns. Only an `ask` here makes a background turn wait; any other `ask` is refused there. */
  readonly background?: ToolRules | undefined;
  /** How long a call waits for its decision, as `parseDuration` takes it. */
  readonly approvalTimeout?: string | undefined;
}

/** How much a model thinks. `none` switches thinking off. */
export type AgentEffort = "none" | "low" | "medium" | "high" | "xhigh" | "max";

/** What the turns of an agent may use. */
export interface AgentLimits {
  /** Input and output tokens of its model calls, from midnight to midnight. */
  readonly tokensPerDay?: number | undefined;
  /** Costs of its model calls, in the currency of the prices. */
  readonly moneyPerDay?: number | undefined;
  /** Turns that execute at the same time in one process. */
  readonly turnsAtOnce?: number | undefined;
  /** How long a turn may execute. */
  readonly turnSeconds?: number | undefined;
}

/** How an agent's conversations become model calls. */
export interface AgentContext {
  /** Maximum tokens of a model request. */
  readonly tokens?: number | undefined;
  /** Whether the model writes a summary of the oldest turns when they no longer fit. Without it, they are left out. */
  readonly summarize?: boolean | undefined;
  /** Whether requests of the Messages protocol contain marks for the provider's prompt cache. */
  readonly promptCache?: boolean | undefined;
}

/** The git state of an agent's folder. */
export interface GitState {
  readonly hasGit: boolean;
  /** Set if there is a repository. */
  readonly hasRemote?: boolean | undefined;
  /** Set if there is a remote: the state of the branch against its upstream, as last fetched. `unknown` if git cannot tell. */
  readonly syncStatus?: "synced" | "ahead" | "behind" | "diverged" | "unknown" | undefined;
}

/** Open points 3: 1-64 of letters, digits, `_`, `-`. */
export const AGENT_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Thrown when the agents cannot be listed at all. */
export class AgentsUnavailable extends Error {
  override readonly name = "AgentsUnavailable";
}

/** Thrown when the texts of the agents can only be read, because their store takes no writes. */
export class AgentTextsReadOnly extends Error {
  override readonly name = "AgentTextsReadOnly";
}

/** The port of agents. */
export const agents: Port<Agents> = definePort<Agents>("agents");
