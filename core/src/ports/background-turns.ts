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
   * `process_restart`. Answers the id of the run that begins when its line has come. Throws EngineFenced and EngineUnavailable.
   */
  start(turn: BackgroundTurn): Promise<{ readonly runId: string }>;
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
  /** All tools that it may use, whatever the agent has else. */
  readonly toolIds: readonly string[];
  /** Most model calls, 1-100. */
  readonly maxTurns: number;
  readonly origin: TurnOrigin;
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
