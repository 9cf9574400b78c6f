import type { ports } from "@portico/core";
import { type ClientRequest, type ClientRequests, requestKey } from "../queries/client-requests.ts";
import { type Conversation, messageStream, type StoredMessage } from "./conversations.ts";
import { readMessage } from "./messages.ts";

/** A turn that executes or waits for a person, with the message that began it. */
export interface RunningTurn {
  readonly request: ClientRequest;
  readonly message: StoredMessage;
  /** Of the message, in the conversation. */
  readonly sequence: number;
}

/**
 * The turn of a conversation that has begun and not ended, in whichever process. The turns of a conversation execute one after another, and
 * each writes its message when it begins and its answer when it ends: so only the newest message can be of a running turn.
 */
export async function findRunningTurn(
  { log, requests }: { readonly log: ports.EventLog; readonly requests: Pick<ClientRequests, "find"> },
  { conversationId, userId }: Pick<Conversation, "conversationId" | "userId">,
  signal: AbortSignal,
): Promise<RunningTurn | undefined> {
  for await (const entry of log.read(messageStream(conversationId), { backwards: true, limit: 1, signal })) {
    const message = readMessage(entry);
    if (message?.role !== "user") return undefined;
    const request = (await requests.find(requestKey(userId, message.clientRequestId)))?.value;
    const isRunning = request?.state === "committed" && request.turnId === message.turnId;
    return isRunning ? { request, message, sequence: entry.sequence } : undefined;
  }
  return undefined;
}
