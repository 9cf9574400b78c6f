import type { InferInput } from "valibot";
import type { followUpBody, startBody } from "@portico/plugins/conversations-runs/client";
import { randomId } from "./random-id.ts";
import { requestDigest } from "./request-digest.ts";

/** A query to an agent, in a new or an existing conversation. */
export interface QueryOptions {
  readonly agentId: string;
  readonly prompt: string;
  readonly conversationId?: string | undefined;
  /** The ID of a user's message of the conversation: the query takes its place, in a new branch of the conversation. */
  readonly replaces?: string | undefined;
  /** The ID of an answer of the conversation: its turn is made again, in a new branch. The prompt is empty then, and there are no files. */
  readonly regenerates?: string | undefined;
  readonly model?: string | undefined;
  /** Maximum number of model calls, 1-100. */
  readonly maxTurns?: number | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Media that the model sees, as returned by `uploadMedia`. With media, the prompt may be empty. */
  readonly mediaRefs?: readonly { readonly mediaId: string }[] | undefined;
  /** Attachments that the model may read: the `fileReference` of each, as returned by `uploadAttachment`. */
  readonly fileReferences?: readonly string[] | undefined;
  /**
   * Default: new IDs. An application that stored its IDs can submit again if it does not know what happened to the submission.
   */
  readonly clientRequestId?: string | undefined;
  readonly userMessageId?: string | undefined;
}

/** The next query of a session. */
export interface FollowUp extends Pick<QueryOptions, "prompt" | "clientRequestId" | "userMessageId"> {
  readonly sessionId: string;
  /** The agent that the session belongs to. Lookups need it. */
  readonly agentId: string;
  /**
   * Milliseconds since 1970; default: now. It is part of the content: an application that stores IDs to submit again stores this
   * with them.
   */
  readonly timestamp?: number | undefined;
}

/** One submission: the content that stays the same in every attempt. */
export interface Submission {
  readonly route: "start" | "followUp";
  readonly agentId: string;
  readonly clientRequestId: string;
  readonly userMessageId: string;
  /** The request body for one connection. */
  bodyFor(originSocketId: string): StartInput | FollowUpInput;
}

export type StartInput = InferInput<typeof startBody>;
export type FollowUpInput = InferInput<typeof followUpBody>;

/**
 * Makes the IDs and the digest of a query. Throws TypeError for a follow-up that has its own ID but no timestamp, because it
 * could not be submitted again.
 */
export function toSubmission(query: QueryOptions | FollowUp, now: number): Submission {
  const clientRequestId = query.clientRequestId ?? randomId("req_");
  const userMessageId = query.userMessageId ?? randomId("msg_");
  if ("sessionId" in query && query.clientRequestId !== undefined && query.timestamp === undefined)
    throw new TypeError("A follow-up with a clientRequestId of one's own needs its timestamp, too");
  const content =
    "sessionId" in query
      ? {
          sessionId: query.sessionId,
          message: { id: userMessageId, role: "user" as const, content: query.prompt, timestamp: query.timestamp ?? now },
          clientRequestId,
        }
      : {
          prompt: query.prompt,
          ...(query.mediaRefs && { mediaRefs: query.mediaRefs.map((media) => ({ ...media })) }),
          options: optionsOf(query),
          clientRequestId,
          userMessageId,
        };
  const digest = requestDigest(content);
  return {
    route: "sessionId" in query ? "followUp" : "start",
    agentId: query.agentId,
    clientRequestId,
    userMessageId,
    bodyFor: (originSocketId) => ({ ...content, requestDigest: digest, originSocketId }),
  };
}

function optionsOf(query: QueryOptions): StartInput["options"] {
  const { agentId, conversationId, replaces, regenerates, model, maxTurns, metadata, fileReferences } = query;
  return {
    agentId,
    ...(conversationId !== undefined && { conversationId }),
    ...(replaces !== undefined && { replaces }),
    ...(regenerates !== undefined && { regenerates }),
    ...(model !== undefined && { model }),
    ...(maxTurns !== undefined && { maxTurns }),
    ...(metadata !== undefined && { metadata: { ...metadata } }),
    ...(fileReferences !== undefined && { fileReferences: [...fileReferences] }),
  };
}
