import { defineManyPort, type ManyPort } from "../port.ts";
import type { AgentDefinition } from "./agents.ts";
import type { ToolCaller, ToolDefinition, ToolResult } from "./tools.ts";

/** Something that can play an agent for one turn: the built-in `loop`, or a third party's agent. */
export interface AgentEngine {
  /** What `agent.json` names under `engine`. */
  readonly id: string;
  /**
   * Work one turn off: from the user's words to the end of the agent's. Everything that costs or has effects stands in `context.step`,
   * so that an engine that durably remembers steps does not do it twice. Throws what broke the turn; when `context.signal` aborts, its
   * reason. What was said until then stays said.
   */
  run(turn: AgentTurn, context: TurnContext): Promise<TurnOutcome>;
}

export interface AgentTurn {
  readonly agentId: string;
  readonly agent: AgentDefinition;
  /** Provider configuration id and model, already chosen. */
  readonly provider: string;
  readonly model: string;
  /** Earlier turns, oldest first. */
  readonly history: readonly ConversationMessage[];
  /** What the user says now. */
  readonly input: readonly MessagePart[];
  /** Only these may be used; which need a person's consent was decided before. */
  readonly tools: readonly ToolDefinition[];
  /** Most model calls, 1-100. */
  readonly maxTurns: number;
  readonly caller: ToolCaller;
}

export interface TurnContext {
  readonly signal: AbortSignal;
  /** See `WorkContext.step`. */
  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options?: { readonly repeatable?: boolean }): Promise<T>;
  /** Run a tool: arguments are checked against its schema, a tool that may not run answers with an error result. Never throws for those. */
  callTool(call: { readonly toolId: string; readonly arguments: unknown }, signal: AbortSignal): Promise<ToolResult>;
  /**
   * Something came out, in order: pieces of text and thinking as they arrive, tool calls and results whole. Where it answers a promise,
   * what was said is more than can be held: say no more until it resolves.
   */
  say(saying: Saying): void | Promise<void>;
}

export type Saying =
  | { readonly type: "text" | "thinking"; readonly delta: string }
  | {
      readonly type: "tool_call";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly arguments: unknown;
    }
  | { readonly type: "tool_result"; readonly callId: string; readonly toolId: string; readonly result: ToolResult };

export interface TurnOutcome {
  /** The agent's last words. */
  readonly output: string;
  /** What the conversation keeps of this turn beside the user's words, for the history of the next. */
  readonly messages: readonly ConversationMessage[];
  readonly toolCalls: readonly TurnToolCall[];
  /** `completed`: the model stopped by itself; `max_turns`: it would have gone on. */
  readonly end: "completed" | "max_turns";
  readonly usage?: TurnUsage | undefined;
}

export interface TurnToolCall {
  readonly callId: string;
  readonly toolId: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly isError: boolean;
}

/** Tokens over the whole turn; a field is absent where nothing was reported. */
export interface TurnUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cachedInputTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  readonly modelCalls: number;
}

export interface ConversationMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly parts: readonly MessagePart[];
}

export type MessagePart =
  | { readonly type: "text"; readonly text: string }
  /** `signature` and `redacted` go back to the model that made them, unchanged. */
  | {
      readonly type: "thinking";
      readonly text: string;
      readonly signature?: string | undefined;
      readonly redacted?: string | undefined;
    }
  | { readonly type: "media"; readonly mediaType: string; readonly name?: string | undefined; readonly data: string }
  | {
      readonly type: "tool_call";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly arguments: unknown;
    }
  | {
      readonly type: "tool_result";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly result: ToolResult;
    };

export const agentEngines: ManyPort<AgentEngine> = defineManyPort<AgentEngine>("agentEngines");
