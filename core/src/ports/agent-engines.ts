import { defineManyPort, type ManyPort } from "../grammar/port.ts";
import type { AgentDefinition } from "./agents.ts";
import type { MeasuredModelCall } from "./telemetry.ts";
import type { ToolCaller, ToolDefinition, ToolResult } from "./tools.ts";

/** A runtime that executes one turn of an agent: the built-in `loop`, or a third party's agent. */
export interface AgentEngine {
  /** The value of `engine` in `agent.json`. */
  readonly id: string;
  /**
   * Execute one turn: from the user's message to the end of the agent's answer. Every cost and side effect is inside
   * `context.step`, so that an engine that durably remembers steps does not repeat it. Throws the error that ended the turn; when
   * `context.signal` aborts, its reason. Messages said before that stay in the conversation.
   */
  run(turn: AgentTurn, context: TurnContext): Promise<TurnOutcome>;
  /**
   * Whether `run` may throw TurnPaused, and takes `AgentTurn.progress`. Default: false. Calls of its turns that need a person's
   * approval are then refused.
   */
  readonly canPause?: boolean | undefined;
  /** Whether `run` takes the messages of `TurnContext.steering`. Default: false. Its turns then take no messages. */
  readonly canSteer?: boolean | undefined;
}

/** One turn of an agent, as an engine gets it. */
export interface AgentTurn {
  readonly agentId: string;
  readonly agent: AgentDefinition;
  /** Provider configuration id and model, already chosen. */
  readonly provider: string;
  readonly model: string;
  /** Earlier turns, oldest first. */
  readonly history: readonly ConversationMessage[];
  /** The user's message of this turn. */
  readonly input: readonly MessagePart[];
  /** Only these tools may be used. */
  readonly tools: readonly TurnTool[];
  /** Maximum number of model calls, 1-100. */
  readonly maxTurns: number;
  readonly caller: ToolCaller;
  /**
   * The `progress` of the pause from which this turn goes on. All calls of that pause are decided: `callTool` runs them, or says
   * why they do not run. Absent at the beginning of a turn.
   */
  readonly progress?: object | undefined;
}

/** A tool that a turn may use. */
export interface TurnTool extends ToolDefinition {
  /**
   * Calls of one lane run one after another, in the order in which the model made them, because a later call may build on the
   * effects of an earlier one. `callTool` enforces this. A call without a lane runs in parallel with all others.
   */
  readonly lane?: string | undefined;
}

/** The services that an engine uses for a turn. */
export interface TurnContext {
  readonly signal: AbortSignal;
  /** See `WorkContext.step`. */
  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options?: { readonly repeatable?: boolean }): Promise<T>;
  /**
   * Run a tool. Arguments are checked against its schema, and a tool that may not run answers with an error result. Never throws
   * for these two cases. All earlier `say` calls are durable when the tool runs: say the call first, so that it is known after a
   * crash. A call that was approved needs its `callId`. If a person rejected it, the result says so.
   */
  callTool(
    call: { readonly callId?: string | undefined; readonly toolId: string; readonly arguments: unknown },
    signal: AbortSignal,
  ): Promise<ToolResult>;
  /**
   * Whether a person must approve this call first. Only for engines with `canPause`: say the call, run all other calls that do
   * not depend on it, and throw TurnPaused. Never true for a call that was decided.
   */
  needsApproval?(call: PausedCall): Promise<boolean>;
  /**
   * Report output of the turn, in order: text and thinking in pieces as they arrive, tool calls and results whole. If it returns
   * a promise, the buffer is full: wait until the promise resolves.
   */
  say(saying: Saying): void | Promise<void>;
  /**
   * What the user said to the turn since the last call of this function, oldest first, for engines with `canSteer`. Ask before each
   * model call, and before the turn ends. Each message is said already: add it to `TurnOutcome.messages`, with the role `user`, and let the
   * model read it before its next answer. Do not ask if there is no further model call. Rejects with the signal's reason, and with what stores
   * throw.
   */
  steering?(): Promise<readonly (readonly MessagePart[])[]>;
  /** Report one ended model call, for the trace of the turn, with the facts of `Telemetry.modelCall`. Never throws. */
  modelCalled?(call: Omit<MeasuredModelCall, "source">): void;
}

/** One output of a turn in progress. */
export type Saying =
  | { readonly type: "text" | "thinking"; readonly delta: string }
  | {
      readonly type: "tool_call";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly arguments: unknown;
    }
  | { readonly type: "tool_result"; readonly callId: string; readonly toolId: string; readonly result: ToolResult }
  /** The engine wrote a summary of earlier turns, because they no longer fit. */
  | { readonly type: "summary"; readonly text: string };

/** The result of a turn. */
export interface TurnOutcome {
  /** The agent's final message. */
  readonly output: string;
  /** Messages that the conversation keeps of this turn, besides the user's message, for the history of the next turn. */
  readonly messages: readonly ConversationMessage[];
  readonly toolCalls: readonly TurnToolCall[];
  readonly end: TurnEnding;
  readonly usage?: TurnUsage | undefined;
  /** Stands for the oldest earlier turns, in this turn and in those that follow. */
  readonly summary?: TurnSummary | undefined;
}

/**
 * Thrown by `run` when the turn waits for the approval of calls. It does not execute meanwhile: it may go on after a restart, and
 * in another process. `run` is called again, with `progress`, when all calls are decided.
 */
export class TurnPaused extends Error {
  override readonly name = "TurnPaused";
  /** At least one. Each was said, and `needsApproval` was true for it. */
  readonly calls: readonly PausedCall[];
  /** All that the engine needs to go on, as JSON. Its format is the engine's own. */
  readonly progress: object;

  constructor(calls: readonly PausedCall[], progress: object) {
    super("The turn waits for a person");
    this.calls = calls;
    this.progress = progress;
  }
}

/** A call of a tool that waits for a person. */
export interface PausedCall {
  readonly callId: string;
  readonly toolId: string;
  readonly arguments: unknown;
}

/** A summary that an engine wrote of the oldest messages of a conversation. */
export interface TurnSummary {
  readonly text: string;
  /** It stands for this many messages of `history`, counted from the oldest. An earlier summary among them counts as one. */
  readonly messages: number;
}

/** Why a completed turn ended (open points 13). */
export type TurnEnding =
  /** The model stopped by itself. */
  | "completed"
  /** The agent would have called more tools, but had used its `maxTurns` model calls. */
  | "max_turns"
  /** Its last answer reached the provider's token limit, or the context was full. */
  | "max_tokens"
  /** The model refused to answer. */
  | "refusal"
  /** The provider withheld the answer. */
  | "content_filter"
  /** The last answer had no text and called no tool, and the turn had sent no message with `SendUserMessage`. */
  | "empty_answer";

/** One tool call of a turn, for the record. */
export interface TurnToolCall {
  readonly callId: string;
  readonly toolId: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly isError: boolean;
}

/** How a call that waited for a person was decided. */
export interface CallDecision {
  /** `expired`: no decision came in time. `withdrawn`: the turn was stopped before a decision. */
  readonly status: "approved" | "rejected" | "expired" | "withdrawn";
  /** The user who decided. */
  readonly decidedBy?: string | undefined;
  /** ISO 8601. */
  readonly decidedAt?: string | undefined;
  readonly comment?: string | undefined;
  /** What the tool got in place of the arguments of the model. */
  readonly arguments?: unknown;
}

/** Tokens of the whole turn. A field is absent if the provider did not report it. */
export interface TurnUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly cachedInputTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  readonly modelCalls: number;
}

/** One message of a conversation, as engines get it in the history. */
export interface ConversationMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly parts: readonly MessagePart[];
}

/** One part of a message. */
export type MessagePart =
  | { readonly type: "text"; readonly text: string }
  /**
   * `signature` and `redacted` are sent back, unchanged, to the model that made them, over the protocol in which it made them. `provider`,
   * `model` and `protocol` name both if they are known.
   */
  | {
      readonly type: "thinking";
      readonly text: string;
      readonly signature?: string | undefined;
      readonly redacted?: string | undefined;
      readonly provider?: string | undefined;
      readonly model?: string | undefined;
      readonly protocol?: string | undefined;
    }
  | { readonly type: "media"; readonly mediaType: string; readonly name?: string | undefined; readonly data: string }
  /** A summary of all messages before it (`TurnSummary`). The only part of its message, which has the role `user`. */
  | { readonly type: "summary"; readonly text: string }
  | {
      readonly type: "tool_call";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly arguments: unknown;
      /** Sent back, unchanged, to the model that made it, which `provider`, `model` and `protocol` name. */
      readonly signature?: string | undefined;
      readonly provider?: string | undefined;
      readonly model?: string | undefined;
      readonly protocol?: string | undefined;
      /** Written by the service, and not by engines: how a person decided about the call. */
      readonly decision?: CallDecision | undefined;
    }
  | {
      readonly type: "tool_result";
      readonly callId: string;
      readonly toolId: string;
      readonly name: string;
      readonly result: ToolResult;
    };

/** The port of agent engines. */
export const agentEngines: ManyPort<AgentEngine> = defineManyPort<AgentEngine>("agentEngines");
