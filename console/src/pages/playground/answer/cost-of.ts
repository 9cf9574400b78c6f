import type { Provider } from "../../providers/ProviderTable.svelte";
import type { AnswerUsage } from "../conversation.ts";

type Price = NonNullable<Provider["prices"]>[number];

const MILLION = 1_000_000;

/** The cost of a call. Undefined without a price, and if the provider did not report the tokens. */
export function costOf(
  { input, output, cachedInput = 0, cacheWrite = 0 }: AnswerUsage,
  price: Price | undefined,
): number | undefined {
  if (!price || input === undefined || output === undefined) return undefined;
  const fresh = Math.max(0, input - cachedInput - cacheWrite);
  const ofInput =
    fresh * price.input + cachedInput * (price.cachedInput ?? price.input) + cacheWrite * (price.cacheWrite ?? price.input);
  return (ofInput + output * price.output) / MILLION;
}
