import { definePort, type Port } from "../grammar/port.ts";
import type { AgentProblem, CheckedAgent } from "./agents.ts";
import type { ToolDefinition } from "./tools.ts";
import type { ModelUsage } from "./usage.ts";

/**
 * Turns of agents without a waiting caller: an event happened, and an agent works on it with the same runtime as for queries. The
 * agent delivers messages to people with the tool `SendUserMessage`. All other output is in its run and receipt.
 */
export interface BackgroundTurns {
  /**
   * The tools that a turn may be given now: the tools of every source, and those that belong to turns, such as `SendUserMessage`.
   * Unreachable sources are left out. Rejects with the signal's reason.
   */
  tools(signal: AbortSignal): Promise<readonly ToolDefinition[]>;
  /** What an agent names and its turns would not get now. Waits at most a second for sources of tools. Default: nothing is known. */
  problems?(agent: CheckedAgent, signal: AbortSignal): Promise<readonly AgentProblem[]>;
  /**
   * Accept a turn. It is durable when this resolves, and is then executed once. Accepted turns queue without a limit. The
   * adapter's options limit how many turns of an agent run at once, and agents take turns. A turn that was executing when its
   * process died is closed as failed, `process_restart`. If the model's provider is away before the turn said or did anything, the
   * adapter may play the turn again later, in the same run, except for turns with `tell`. Returns the ID of the run that begins when the turn leaves the queue.
   * Throws EngineFenced and EngineUnavailable, and TypeError for a signal that the engine does not accept.
   */
  start(turn: BackgroundTurn): Promise<{ readonly runId: string }>;
  /**
   * The turn that was accepted with this key, by its run. `isOpen`: it has not ended, and is queued, executes, or waits. Undefined for unknown
   * keys, and for turns whose run was removed. Throws errors of unavailable stores.
   */
  find(key: string): Promise<FoundTurn | undefined>;
  /**
   * Stop a turn that executes or is queued. An executing turn ends as soon as its agent reacts to the signal. A queued turn never
   * begins. In both cases the run is interrupted for this reason, an identifier of the caller's such as `workflow_cancelled`.
   * Durable when it resolves, also across a restart. False if the turn has ended or does not exist. A turn that was just ending
   * may still end normally. Throws EngineFenced, EngineUnavailable, and errors of unavailable stores; call it again then.
   */
  stop(runId: string, reason: string): Promise<boolean>;
  /**
   * The messages that an agent delivered, newest first: `limit` messages after the first `offset`, read one at a time, and the
   * total number. Throws LogUnavailable, as reading the items does.
   */
  deliveries(agentId: string, page: DeliveryPage): Promise<{ readonly items: AsyncIterable<Delivery>; readonly total: number }>;
}

/** A turn to execute. The caller has already decided and checked everything in it. */
export interface BackgroundTurn {
  readonly agentId: string;
  /** The owner of the run. Tools can access what this user may access. */
  readonly userId: string;
  readonly prompt: string;
  /** All tools that the turn may use, in place of the agent's own. Default: the agent's tools, as in queries. */
  readonly toolIds?: readonly string[] | undefined;
  /** Maximum number of model calls, 1-100. Default: the agent's own, or 20. */
  readonly maxTurns?: number | undefined;
  readonly origin: TurnOrigin;
  /**
   * For a turn that a workflow run begins: nesting depth of that run. It is passed to the turn's tools, and to the turns that
   * they begin.
   */
  readonly workflowDepth?: number | undefined;
  /**
   * Idempotency key. The same key identifies the same turn, whatever else the turn contains: `start` returns its run, and nothing
   * is executed twice. All callers share one namespace, so a key must name its caller. Keys are remembered at least as long as
   * the engine remembers ended work. Default: every start is a new turn.
   */
  readonly key?: string | undefined;
  /** The work that is notified when the turn has ended. */
  readonly tell?: TurnListener | undefined;
  /** The failed run that this turn runs again. Its own run names it. */
  readonly againOf?: string | undefined;
}

/** A turn that was found by its key. */
export interface FoundTurn {
  readonly runId: string;
  readonly isOpen: boolean;
  /** How it ended, and why it was interrupted. Absent while it is open. `at`: milliseconds since 1970. */
  readonly end?: (Pick<BackgroundTurnEnd, "status" | "reason"> & { readonly at: number }) | undefined;
}

/**
 * Engine work that is notified of the end of a turn, as a signal with BackgroundTurnEnd. It is notified of every end, also if the
 * turn's process died or the turn was stopped before it began. The signal is sent after the end is durable, and at least once:
 * the receiver uses the first. Ended or unknown work is not an error.
 */
export interface TurnListener {
  readonly workId: string;
  /** The signal's name: 1-512 well-formed characters without U+0000. */
  readonly signal: string;
}

/** How a turn ended. A repeated notification has the same content. */
export interface BackgroundTurnEnd {
  readonly runId: string;
  readonly status: "completed" | "failed" | "interrupted";
  /** The agent's output, also of a turn that broke off. Cut after 1,048,576 characters, with a note. */
  readonly output: string;
  /**
   * Why it failed (`error`, `timeout`, `process_restart`), why it was interrupted (`user_stop`, `system_suspension`, or the
   * reason given to `stop`), or why it completed other than by its agent's own decision: a TurnEnding such as `max_turns`.
   */
  readonly reason?: string | undefined;
  /** For a failure: code and message that clients may read. */
  readonly failure?: { readonly code: string; readonly message: string } | undefined;
  /** What its model calls used. Absent if that is not known. */
  readonly usage?: ModelUsage | undefined;
}

/** The cause of a background turn: for example `webhook`, and the event's name. */
export interface TurnOrigin {
  readonly origin: string;
  readonly displayName: string;
}

/** A page of deliveries. `offset` counts from the newest. */
export interface DeliveryPage {
  readonly offset: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** A message that an agent delivered to its users (specification 2.6). */
export interface Delivery extends TurnOrigin {
  readonly id: string;
  readonly runId: string;
  /** ISO 8601. */
  readonly deliveredAt: string;
  readonly delivery: DeliveredMessage;
  /** Set if the message degraded to plain text, because its blocks are not valid. */
  readonly text?: string | undefined;
}

/** A message that an agent delivered. */
export interface DeliveredMessage {
  /** A text, or blocks. Absent if the message degraded. */
  readonly message?: string | readonly MessageBlock[] | undefined;
  /** References of attachments, unchanged. */
  readonly attachments: readonly string[];
}

/** The blocks of a message that is not plain text. Texts are Markdown, except code. */
export type MessageBlock =
  | { readonly type: "text" | "heading"; readonly text: string }
  | { readonly type: "code"; readonly text: string; readonly language?: string | undefined }
  | { readonly type: "list"; readonly items: readonly string[]; readonly ordered?: boolean | undefined }
  | { readonly type: "link"; readonly url: string; readonly text?: string | undefined }
  | { readonly type: "table"; readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };

/** The port of background turns. */
export const backgroundTurns: Port<BackgroundTurns> = definePort<BackgroundTurns>("backgroundTurns");
