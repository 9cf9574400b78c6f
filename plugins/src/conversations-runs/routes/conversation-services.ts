import type { callerGuard, Handlers, ports } from "@portico/core";
import type { AgentRuntime } from "../runtime/agent-runtime.ts";
import type { conversationsRunsContract } from "../contract.ts";

/** The services that the routes of this area use. */
export interface ConversationServices {
  readonly runtime: AgentRuntime;
  readonly turns: ports.BackgroundTurns;
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly audit?: ports.Audit | undefined;
  readonly agents: ports.Agents;
  readonly agentEngines: readonly ports.AgentEngine[];
  readonly models: readonly ports.ModelProvider[];
  readonly tools: readonly ports.ToolSource[];
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  /** Present where agents work by themselves. */
  readonly schedules?: ports.Schedules | undefined;
  readonly areas: readonly ports.Area[];
}

/** The handlers of this area, by route. */
export type ConversationHandlers = Handlers<
  typeof conversationsRunsContract,
  { readonly instance: ReturnType<typeof callerGuard> }
>;
