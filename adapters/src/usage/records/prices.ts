import type { ports } from "@portico/core";
import type { ModelPrice, PriceTable } from "../usage-options.ts";
import type { Counts } from "./tally.ts";

const MILLION = 1_000_000;

/** Finds the price of a call by its subject and its time. */
export function createPriceOf(table: PriceTable | undefined) {
  const find = createFind(table);
  /** The cost of counts, and how many of their calls have no price. */
  return (subject: ports.UsageSubject, at: number, counts: Counts): { readonly cost: number; readonly unpriced: number } => {
    const { inputTokens, cachedInputTokens: read, cacheWriteTokens: written, outputTokens } = counts;
    const price = table && find(subject, at);
    if (!price) return { cost: 0, unpriced: inputTokens + outputTokens > 0 ? counts.calls : 0 };
    const { input, output, cachedInput = input, cacheWrite = input } = price;
    const fresh = Math.max(0, inputTokens - read - written);
    return { cost: (fresh * input + read * cachedInput + written * cacheWrite + outputTokens * output) / MILLION, unpriced: 0 };
  };
}

/** The prices of a provider at a time, in milliseconds since 1970: one for each model that has a price. */
export function pricesAt(table: PriceTable | undefined, provider: string, at: number): readonly ModelPrice[] {
  const find = createFind(table);
  const models = new Set(table?.models.map(({ model }) => model));
  return [...models].flatMap((model) => find({ provider, model }, at) ?? []);
}

function createFind(table: PriceTable | undefined) {
  const newestFirst = [...(table?.models ?? [])].sort((one, other) => (one.from < other.from ? 1 : -1));
  return ({ provider, model }: Pick<ports.UsageSubject, "provider" | "model">, at: number): ModelPrice | undefined => {
    const isValid = (price: ModelPrice) => price.model === model && Date.parse(price.from) <= at;
    return (
      newestFirst.find((price) => price.provider === provider && isValid(price)) ??
      newestFirst.find((price) => price.provider === undefined && isValid(price))
    );
  };
}
