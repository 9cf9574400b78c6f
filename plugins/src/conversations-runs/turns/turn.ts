import type { ChannelMessage, ports } from "@portico/core";
import type { InferOutput } from "valibot";
import type { queryChannel, turnMessage } from "../channel.ts";

/** A turn of an agent, of any origin. */
export interface PlayedTurn {
  readonly turnId: string;
  readonly userId: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly prompt: string;
  readonly model?: string | undefined;
  /** Absent: as the agent says, or 20. */
  readonly maxTurns?: number | undefined;
  readonly conversationId?: string | undefined;
  readonly clientRequestId?: string | undefined;
  readonly delegation?: Delegation | undefined;
  /** A caller waits for its answer, although it has no conversation. */
  readonly isAsked?: true | undefined;
  /** How deep the workflow run stands that is behind it, where one is. */
  readonly workflowDepth?: number | undefined;
  /** The trace of what asked for it (W3C `traceparent`). */
  readonly traceparent?: string | undefined;
  /** When it was accepted, and when it arrived if that was earlier. Milliseconds since 1970. */
  readonly acceptedAt: number;
  readonly arrivedAt?: number | undefined;
}

/** A file that came with a query, as it was then. */
export interface TurnFile {
  /** A mediaId, or a fileReference. */
  readonly reference: string;
  readonly name: string;
  readonly mimeType: string;
  /** Bytes. */
  readonly size: number;
}

/**
 * Files are kept by reference: what they hold is read when a model is to see it. A summary is the only part of its message. It stands for all
 * messages up to the one with the sequence number `upTo`.
 */
export type StoredPart =
  | Exclude<ports.MessagePart, { type: "summary" }>
  | StoredSummary
  | ({ readonly type: "media_ref" } & TurnFile)
  | ({ readonly type: "file_ref" } & TurnFile);

/** A summary of the oldest messages of a conversation, which stay readable behind it. */
export interface StoredSummary {
  readonly type: "summary";
  readonly text: string;
  readonly upTo: number;
}

/** An accepted query: everything that its execution needs, as the engine keeps it. */
export interface Turn extends PlayedTurn {
  readonly conversationId: string;
  readonly clientRequestId: string;
  readonly userMessageId: string;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Media that the model is shown, and attachments that it may read. */
  readonly media?: readonly TurnFile[] | undefined;
  readonly files?: readonly TurnFile[] | undefined;
  /** The listener whose connections receive its events. */
  readonly clientInstanceId?: string | undefined;
  /** It is the first of a new conversation, which is written down when it begins. */
  readonly opens?: true | undefined;
}

/** Where a delegated turn comes from (open points 10). */
export interface Delegation {
  readonly fromAgentId: string;
  readonly parentRunId: string;
  /** Absent where no query is behind it. */
  readonly parentClientRequestId?: string | undefined;
  readonly mode: "wait" | "background";
  /** The agents from the first to the one that delegated. */
  readonly chain: readonly string[];
  /** A background turn is behind it. */
  readonly isBackground?: true | undefined;
}

/** Whether no person follows a turn: a background turn, and one that it delegated. */
export function isBackground({ conversationId, isAsked, delegation }: PlayedTurn): boolean {
  return (conversationId === undefined && !isAsked) || delegation?.isBackground === true;
}

/** What a turn tells its clients, as the channel sends it. */
export type TurnEvent = ChannelMessage<typeof queryChannel>;
export type TurnMessage = InferOutput<typeof turnMessage>;

/** The stream in which a turn's events are kept for clients that come back. */
export const transcriptStream = (turnId: string): string => `turns/${turnId}`;

/** What every event of a turn says of it. */
export function identifiersOf({ sessionId, runId, agentId, conversationId, clientRequestId }: PlayedTurn) {
  return { sessionId, runId, agentId, conversationId, clientRequestId };
}

/**
 * The suffix that the ids of a turn share: `turn_`, `run_` and `ses_` stand before it. It begins with the time, `at` (milliseconds since 1970): turns
 * of about the same time lie together in the stores, which write less then.
 */
export function newIdSuffix(ids: ports.Ids, at: number): string {
  return ids.id(timeOf(at));
}

/** The first suffix of this time: every suffix of an earlier time is smaller. */
export function firstIdSuffix(at: number): string {
  return timeOf(Math.max(at, 0));
}

function timeOf(at: number): string {
  return Math.floor(at).toString(36).padStart(9, "0");
}
