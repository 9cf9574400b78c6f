import type { ChannelMessage } from "@portico/core";
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
  /** How deep the workflow run stands that is behind it, where one is. */
  readonly workflowDepth?: number | undefined;
  /** The trace of what asked for it (W3C `traceparent`). */
  readonly traceparent?: string | undefined;
  /** When it arrived, and when it was accepted. Milliseconds since 1970. Earlier versions stored neither. */
  readonly arrivedAt?: number | undefined;
  readonly acceptedAt?: number | undefined;
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
export function isBackground({ conversationId, delegation }: PlayedTurn): boolean {
  return conversationId === undefined || delegation?.isBackground === true;
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
