import { ports } from "@portico/core";
import { chosenBranch } from "../conversations/branches.ts";
import { type Conversation, messageStream, ownConversation, type StoredMessage } from "../conversations/conversations.ts";
import { readMessage, readMessages } from "../conversations/messages.ts";
import { agentErrors } from "../errors.ts";
import { PAGE_LIMIT } from "../limits.ts";
import { readFilter, readLimit, readPositive } from "../pagination.ts";
import { type ClientRequest, type ClientRequests, requestKey } from "../requests/client-requests.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists conversations, a page at a time: an owner sees all, a member its own. */
export function listConversations({ runtime }: ConversationServices): ConversationHandlers["conversations"] {
  const { conversations } = runtime;
  return async ({ query, who }) => {
    const limit = readLimit(query.limit, PAGE_LIMIT);
    const after = readFilter("after", query.after);
    if (who.role !== "owner" && who.userId === undefined) return { conversations: [] };
    try {
      const { items, next } = await conversations.page(who.role === "owner" ? undefined : who.userId, limit, after);
      return {
        conversations: items.map(
          ({ value: { depth: _depth, clearing: _clearing, lastTurnId: _turn, ...conversation } }) => conversation,
        ),
        ...(next !== undefined && { next }),
      };
    } catch (error) {
      if (error instanceof ports.RecordCursorInvalid)
        throw agentErrors.invalid_pagination("Invalid pagination: after must be the next of the page before");
      throw error;
    }
  };
}

/** Shows the messages of a conversation. */
export function listMessages({ log, runtime }: ConversationServices): ConversationHandlers["messages"] {
  return async ({ params, query, who, signal }) => {
    const limit = readLimit(query.limit, PAGE_LIMIT);
    const before = query.before === undefined ? undefined : readPositive("before", query.before, 1);
    const asked = query.branch === undefined ? undefined : readPositive("branch", query.branch, 1);
    const { conversations } = runtime;
    if (!(await ownConversation(conversations, who, params.id))) throw agentErrors.conversation_not_found();
    const jumps = (await conversations.branches.find(params.id))?.value.jumps ?? [];
    const branch = asked ?? chosenBranch(jumps);
    const messages = await readMessages(log, params.id, { before, limit, jumps, branch, signal });
    if (!messages) throw agentErrors.branch_not_found();
    return messages;
  };
}

/** Chooses the branch of a conversation that is shown, and that its next turn continues. */
export function chooseBranch({ runtime }: ConversationServices): ConversationHandlers["chooseBranch"] {
  const { admission, conversations } = runtime;
  return async ({ params, body: { branch }, who }) => {
    const isChosen = (await ownConversation(conversations, who, params.id)) && (await admission.chooseBranch(params.id, branch));
    if (!isChosen) throw agentErrors.conversation_not_found();
    return { conversationId: params.id, branch };
  };
}

/** Shows the turn of a conversation that executes now, or waits for a person, whichever client submitted it. */
export function readRunningTurn({ log, runtime }: ConversationServices): ConversationHandlers["runningTurn"] {
  const { conversations, requests, runs } = runtime;
  return async ({ params, who, signal }) => {
    const conversation = await ownConversation(conversations, who, params.id);
    if (!conversation) throw agentErrors.conversation_not_found();
    const running = await findRunningTurn({ log, requests }, conversation, signal);
    if (!running) return { turn: null };
    const { request, message, sequence } = running;
    const { runId, sessionId, agentId, userId, clientRequestId, userMessageId, steering = [] } = request;
    const delegation = (await runs.find(runId))?.value.delegation;
    const { turnId: _turnId, ...shown } = message;
    return {
      turn: {
        ...{ runId, sessionId, agentId, userId, clientRequestId, userMessageId },
        startedAt: message.at,
        steering: steering.map(({ id, text = "" }) => ({ messageId: id, text })),
        isWaiting: request.waits !== undefined,
        begunBy: delegation
          ? { kind: "agent" as const, agentId: delegation.fromAgentId, runId: delegation.parentRunId }
          : { kind: "client" as const },
        message: { sequence, ...shown, parts: [...shown.parts], metadata: shown.metadata && { ...shown.metadata } },
      },
    };
  };
}

/** Stops the executing turn of a conversation, and removes its messages. */
export function clearConversation({ runtime }: ConversationServices): ConversationHandlers["clear"] {
  const { clearing, conversations } = runtime;
  return async ({ params, who, signal }) => {
    const mayClear = (userId: string) => who.role === "owner" || who.userId === userId;
    const isCleared =
      (await ownConversation(conversations, who, params.id)) && (await clearing.clear(params.id, mayClear, signal));
    if (!isCleared) throw agentErrors.conversation_not_found();
    return { conversationId: params.id, cleared: true };
  };
}

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
