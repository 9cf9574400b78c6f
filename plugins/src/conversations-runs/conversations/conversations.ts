import { hasAtMost, type ports, readPages } from "@portico/core";
import { CONVERSATION_ID_CHARACTERS } from "../limits.ts";
import type { StoredPart } from "../turns/turn.ts";
import { createBranches } from "./branches.ts";

/** A conversation of one user with one agent. Its next turn continues its session. Clearing ends the session. */
export interface Conversation {
  readonly conversationId: string;
  readonly userId: string;
  readonly agentId: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly sessionId?: string | undefined;
  /** Depth of its agent in a chain of delegations; absent for a person's own conversation. */
  readonly depth?: number | undefined;
  /** The turn that was accepted last. When it has ended, no turn waits. */
  readonly lastTurnId: string;
  /** It is being cleared, and takes no query until that is done. */
  readonly clearing?: true | undefined;
}

/** The stored form of a message. */
export interface StoredMessage {
  readonly id: string;
  readonly role: ports.ConversationMessage["role"];
  readonly parts: readonly StoredPart[];
  /** ISO 8601. */
  readonly at: string;
  readonly turnId: string;
  readonly clientRequestId: string;
  /** A user's message to a turn that went on. */
  readonly steers?: true | undefined;
  /** The facts of its query (open points 7); only a user's message has it. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** The stream of a conversation's messages. */
export const messageStream = (conversationId: string): string => `conversations/${conversationId}`;

interface ConversationFilter {
  readonly userId?: string | undefined;
  readonly before?: string | undefined;
}

export type Conversations = ReturnType<typeof createConversations>;

/** The conversations of an instance. */
export function createConversations(records: ports.Records) {
  const collection = records.collection<Conversation>({
    name: "conversations",
    indexes: { byUser: ["userId", "updatedAt"], byChange: ["updatedAt"] },
  });
  return {
    find: (conversationId: string): Promise<ports.Stored<Conversation> | undefined> => collection.get(conversationId),
    /** The branches of a conversation are written in the commits that write the conversation. */
    branches: createBranches(records),
    write: collection.write,
    put: collection.put,
    /** The most recently changed first. Without a user, those of all users. Throws RecordCursorInvalid. */
    page: (userId: string | undefined, limit: number, after: string | undefined): Promise<ports.Page<Conversation>> =>
      collection.query({
        ...(userId !== undefined && { where: { userId } }),
        order: { by: "updatedAt", direction: "descending" },
        limit,
        ...(after !== undefined && { after }),
      }),
    /** The conversations of a user, or those of all users that changed before this time (ISO 8601), the first first, in pages. */
    async *oldest({ userId, before }: ConversationFilter): AsyncGenerator<readonly ports.Stored<Conversation>[], void> {
      const order = { by: "updatedAt", direction: "ascending" } as const;
      for await (const items of readPages(collection, { order, ...(userId !== undefined && { where: { userId } }) })) {
        const found = items.filter(({ value }) => before === undefined || value.updatedAt < before);
        yield found;
        if (found.length < items.length) return;
      }
    },
  };
}

/**
 * The engine's name for the work on a conversation. It contains the depth in a chain of delegations: a turn that waits for another
 * turn never occupies the slot that the other turn needs.
 */
export const workKind = (depth: number): string => `query-turn-${depth}`;

/** Run and session of one beginning share the end of their ids, so that either leads to the other. */
export function runOfSession(sessionId: string): string | undefined {
  return /^ses_[A-Za-z0-9]+$/.test(sessionId) ? `run_${sessionId.slice(4)}` : undefined;
}

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
