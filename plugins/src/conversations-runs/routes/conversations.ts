import { ports } from "@portico/core";
import type { Conversation, Conversations } from "../conversations/conversations.ts";
import { readMessages } from "../conversations/messages.ts";
import { agentErrors } from "../errors.ts";
import { CONVERSATION_ID_CHARACTERS, PAGE_LIMIT, PAGE_LIMIT_MAXIMUM } from "../limits.ts";
import { readFilter, readPositive } from "../pagination.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Lists conversations, a page at a time: an owner sees all, a member its own. */
export function listConversations({ runtime }: ConversationServices): ConversationHandlers["conversations"] {
  const { conversations } = runtime;
  return async ({ query, who }) => {
    const limit = Math.min(readPositive("limit", query.limit, PAGE_LIMIT), PAGE_LIMIT_MAXIMUM);
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
    const limit = Math.min(readPositive("limit", query.limit, PAGE_LIMIT), PAGE_LIMIT_MAXIMUM);
    const before = query.before === undefined ? undefined : readPositive("before", query.before, 1);
    if (!(await ownConversation(runtime.conversations, who, params.id))) throw agentErrors.conversation_not_found();
    return readMessages(log, params.id, { before, limit, signal });
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

/** Undefined for a conversation that this caller may not see. */
async function ownConversation(
  conversations: Conversations,
  who: ports.Caller,
  conversationId: string,
): Promise<Conversation | undefined> {
  const isShort = conversationId.length <= CONVERSATION_ID_CHARACTERS;
  const stored = isShort ? await conversations.find(conversationId).catch(notAnId) : undefined;
  return stored && (who.role === "owner" || stored.value.userId === who.userId) ? stored.value : undefined;
}

/** No store takes such an id: the conversation does not exist. */
function notAnId(error: unknown): undefined {
  if (!(error instanceof TypeError)) throw error;
}
