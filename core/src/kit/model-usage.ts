import * as v from "valibot";
import { maxCharacters } from "./text.ts";
import type { ModelUsage } from "../ports/usage.ts";

/** What several model calls used (`ports.ModelUsage`), as calls show it. Fields that are not known are absent. */
export const modelUsage = v.object({
  inputTokens: v.optional(v.number()),
  outputTokens: v.optional(v.number()),
  cost: v.optional(v.number()),
  currency: v.optional(v.string()),
});

/** The areas that call models. */
export const modelCallers = v.picklist(["agent", "workflow", "proxy"]);

const value = v.optional(v.pipe(v.string(), maxCharacters(256)));

/** Parts of a query that choose calls of models: a value that they must have. */
export const callFilters = {
  source: v.optional(modelCallers),
  provider: value,
  model: value,
  userId: value,
  agentId: value,
  workflowId: value,
  tokenId: value,
} as const;

/** The sum of both. What neither reports is absent: it is not zero. Of two currencies, only the cost in the later one counts. */
export function addModelUsage(before: ModelUsage | undefined, more: ModelUsage): ModelUsage {
  const sum = (one: number | undefined, other: number | undefined) =>
    one === undefined || other === undefined ? (one ?? other) : one + other;
  const currency = more.currency ?? before?.currency;
  const isSame = before?.currency === undefined || before.currency === currency;
  const all = {
    inputTokens: sum(before?.inputTokens, more.inputTokens),
    outputTokens: sum(before?.outputTokens, more.outputTokens),
    cost: sum(isSame ? before?.cost : undefined, more.cost),
    currency,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
