import { defineManyPort, type ManyPort } from "../port.ts";

/** A place that tools come from: built in, an MCP server, a plugin. */
export interface ToolSource {
  /** Names the source in logs; unique among the sources of an app. */
  readonly id: string;
  /** What it offers now; may change while the app runs. Throws ToolsUnavailable. */
  list(signal?: AbortSignal): Promise<readonly ToolDefinition[]>;
  /**
   * Run a tool. A tool that fails at its work gives a result with `isError`, for the model to read. Throws ToolNotFound for an id that
   * `list` does not have, ToolArgumentsInvalid for arguments that break `inputSchema`, ToolsUnavailable, or the signal's reason.
   */
  call(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
}

export interface ToolDefinition {
  /** Unique in an app; tools of an MCP server are `server/tool`. */
  readonly id: string;
  /** What the model calls it: letters, digits, `_`, `-`. */
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object's. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly riskLevel: RiskLevel;
  /** Never run without a person's consent (open points 3). */
  readonly requiresConfirmation: boolean;
  /** Calling it again with the same arguments changes nothing more than calling it once; what only reads is idempotent, too. */
  readonly idempotent: boolean;
}

export type RiskLevel = "low" | "medium" | "high" | "critical";

export interface ToolCall {
  readonly toolId: string;
  readonly arguments: unknown;
  readonly caller: ToolCaller;
}

/** On whose behalf a tool runs; grants nothing by itself. */
export interface ToolCaller {
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly runId?: string | undefined;
  /** Provider configuration that the agent uses. */
  readonly providerId?: string | undefined;
  /**
   * How deep the workflow run stands that is behind this call, in a chain of runs that begin each other, also through agents: 0 for the first
   * of a chain; absent where no run is behind it. It comes from the work itself, never from a model: what begins a run counts on from it.
   */
  readonly workflowDepth?: number | undefined;
}

export interface ToolResult {
  readonly content: readonly ToolContent[];
  readonly isError: boolean;
}

export type ToolContent =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mimeType: string; readonly data: string };

/** Thrown for an id that the source does not offer. */
export class ToolNotFound extends Error {
  override readonly name = "ToolNotFound";
}

/** Thrown for arguments that break the tool's schema; the message names the paths, not the values. */
export class ToolArgumentsInvalid extends Error {
  override readonly name = "ToolArgumentsInvalid";
}

/** Thrown when the source cannot be reached now. */
export class ToolsUnavailable extends Error {
  override readonly name = "ToolsUnavailable";
}

export const tools: ManyPort<ToolSource> = defineManyPort<ToolSource>("tools");
