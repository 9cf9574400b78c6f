import { readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";

const budget = v.object({
  scope: v.picklist(["instance", "user", "agent"]),
  /** The user or the agent. Absent for the instance. */
  id: v.optional(v.string()),
  limit: v.picklist(["tokensPerDay", "moneyPerDay"]),
  /** Tokens or money since midnight. Calls without a price and calls whose usage is unknown count nothing. */
  used: v.number(),
  most: v.number(),
});

/** How much of the limits of a day is used: an extension of the specification. */
export const budgetRoutes = {
  budgets: {
    method: "GET",
    path: "/api/budgets",
    summary: "Read how much of the limits of the day is used, and when the day ends",
    query: readParameters({}),
    success: reply.json(
      v.object({
        /** ISO 8601. Absent if the instance counts no usage. */
        endsAt: v.optional(v.string()),
        /** The currency of limits of money. Absent without prices. */
        currency: v.optional(v.string()),
        /** Those of which the largest part is used first. */
        budgets: v.array(budget),
        /** How many budgets are left out of the answer. */
        omitted: v.number(),
      }),
    ),
    errors: { unauthorized: agentErrors.unauthorized },
  },
} as const;
