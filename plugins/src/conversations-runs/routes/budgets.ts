import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Tells how much of the limits of the day is used: the owner all of them, members their own. */
export function listBudgets({ runtime }: ConversationServices): ConversationHandlers["budgets"] {
  return async ({ who: { role, userId } }) => {
    const isOwner = role === "owner";
    const found = isOwner || userId !== undefined ? await runtime.limits.today(isOwner ? undefined : userId) : undefined;
    if (!found) return { budgets: [], omitted: 0 };
    const { endsAt, currency, budgets, omitted } = found;
    return {
      endsAt: new Date(endsAt).toISOString(),
      ...(currency !== undefined && { currency }),
      budgets: budgets.map(({ scope, id, limit, used, most }) => ({ scope, ...(id !== undefined && { id }), limit, used, most })),
      omitted,
    };
  };
}
