import { hasAtMost, type ports } from "@portico/core";
import { CONVERSATION_ID_CHARACTERS } from "../limits.ts";
import type { Conversation, Conversations } from "./conversations.ts";

/** Undefined for a conversation that this caller may not see: an owner sees all, a member its own. */
export async function ownConversation(
  conversations: Pick<Conversations, "find">,
  who: Pick<ports.Caller, "role" | "userId">,
  conversationId: string,
): Promise<Conversation | undefined> {
  const isShort = hasAtMost(CONVERSATION_ID_CHARACTERS, conversationId);
  const stored = isShort ? await conversations.find(conversationId).catch(notAnId) : undefined;
  return stored && (who.role === "owner" || stored.value.userId === who.userId) ? stored.value : undefined;
}

/** No store takes such an id: the conversation does not exist. */
function notAnId(error: unknown): undefined {
  if (!(error instanceof TypeError)) throw error;
}
