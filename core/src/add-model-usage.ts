import type { ModelUsage } from "./ports/usage.ts";

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
