import { definePort, type Port } from "../port.ts";
import type { ToolDefinition } from "./tools.ts";

/**
 * Turns of agents that nobody waits for: something happened, and an agent works on it with the same runtime as on queries. What it wants to
 * tell people it delivers with the tool `SendUserMessage`; everything else stands in its run and receipt.
 */
export interface BackgroundTurns {
  /**
   * The tools that a turn may be given now: those of every source, and those that belong to turns, such as `SendUserMessage`. Sources that
   * cannot be reached are left out. Rejects with the signal's reason.
   */
  tools(signal: AbortSignal): Promise<readonly ToolDefinition[]>;
  /**
   * Accept a turn: durable when this resolves, and then executed once. However many are accepted, they wait in line; an agent works on as
   * many at once as the adapter's options say, and agents take turns. One that was executing when its process died is closed as failed,
   * `process_restart`. Answers the id of the run that begins when its line has come. Throws EngineFenced and EngineUnavailable, and
   * TypeError for a signal that no engine takes.
   */
  start(turn: BackgroundTurn): Promise<{ readonly runId: string }>;
  /**
   * Stop a turn, whether it executes or waits in line: the first ends as soon as its agent listens, the second never begins, and the run
   * of either is interrupted for this reason, an identifier of the caller's such as `workflow_cancelled`. Durable when it resolves, over a
   * restart, too. False where it has ended, or is none. One that was just ending may end as it would have. Throws EngineFenced,
   * EngineUnavailable, and what the stores throw that are away; then it may be asked again.
   */
  stop(runId: string, reason: string): Promise<boolean>;
  /**
   * What an agent delivered, the newest first: `limit` after the first `offset`, one at a time, and how many there are in all. Throws
   * LogUnavailable, as reading the items does.
   */
  deliveries(agentId: string, page: DeliveryPage): Promise<{ readonly items: AsyncIterable<Delivery>; readonly total: number }>;
}

/** What is to be done, decided and checked. */
export interface BackgroundTurn {
  readonly agentId: string;
  /** On whose behalf: the run is this user's, and tools reach what this user may. */
  readonly userId: string;
  readonly prompt: string;
  /** All tools that it may use, whatever the agent has else; default: those of the agent, as in queries. */
  readonly toolIds?: readonly string[] | undefined;
  /** Most model calls, 1-100. */
  readonly maxTurns: number;
  readonly origin: TurnOrigin;
  /** Of a turn that a workflow run begins: how deep that run stands. The turn's tools are told it, and those of turns that it begins. */
  readonly workflowDepth?: number | undefined;
  /**
   * The same key again is the same turn, whatever else it says: `start` answers its run, and nothing is done twice. One namespace for all
   * callers, so that a key says whose it is. Remembered for as long as the engine remembers ended work, at least. Default: every start is
   * a turn of its own.
   */
  readonly key?: string | undefined;
  /** Who is told when it has ended. */
  readonly tell?: TurnListener | undefined;
}

/**
 * Work of the engine that is told the end of a turn, as a signal with BackgroundTurnEnd, however it ended: also where its process died, or
 * it was stopped before it began. Told after the end is durable, and at least once: whoever waits takes the first. Work that has ended, or
 * never was, is no error.
 */
export interface TurnListener {
  readonly workId: string;
  /** The signal's name: 1-512 well-formed characters without U+0000. */
  readonly signal: string;
}

/** How a turn ended. Told again, it says the same. */
export interface BackgroundTurnEnd {
  readonly runId: string;
  readonly status: "completed" | "failed" | "interrupted";
  /** What the agent said, also before it broke off; cut with a note behind 1,048,576 characters. */
  readonly output: string;
  /**
   * Why it failed (`error`, `timeout`, `process_restart`), what interrupted it (`user_stop`, `system_suspension`, or the reason given to
   * `stop`), or `max_turns`: it completed because it had no model call left.
   */
  readonly reason?: string | undefined;
  /** Of a failure, in words that a client may read. */
  readonly failure?: { readonly code: string; readonly message: string } | undefined;
}

/** What began a background turn: `webhook`, say, and the event's name. */
export interface TurnOrigin {
  readonly origin: string;
  readonly displayName: string;
}

export interface DeliveryPage {
  readonly offset: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** A message that an agent delivered to the people around it (specification 2.6). */
export interface Delivery extends TurnOrigin {
  readonly id: string;
  readonly runId: string;
  /** ISO 8601. */
  readonly deliveredAt: string;
  readonly delivery: DeliveredMessage;
  /** Set where the message degraded to plain text, because its blocks are none that can be shown. */
  readonly text?: string | undefined;
}

export interface DeliveredMessage {
  /** A text, or blocks; absent where it degraded. */
  readonly message?: string | readonly MessageBlock[] | undefined;
  /** References of attachments, as they were given. */
  readonly attachments: readonly string[];
}

/** What a message can be made of beside plain text. Texts are Markdown, but for code. */
export type MessageBlock =
  | { readonly type: "text" | "heading"; readonly text: string }
  | { readonly type: "code"; readonly text: string; readonly language?: string | undefined }
  | { readonly type: "list"; readonly items: readonly string[]; readonly ordered?: boolean | undefined }
  | { readonly type: "link"; readonly url: string; readonly text?: string | undefined }
  | { readonly type: "table"; readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };

export const backgroundTurns: Port<BackgroundTurns> = definePort<BackgroundTurns>("backgroundTurns");
