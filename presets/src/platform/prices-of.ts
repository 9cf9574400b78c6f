import type { PriceTable } from "@portico/adapters/usage/records";
import type { PlatformSettings } from "../settings/platform.ts";

/** The currency of prices that a provider's models have, if `prices` names none. */
const CURRENCY = "USD";
/** A price without a first day holds for all days. */
const ALWAYS = "1970-01-01";

/** All prices of the settings: those of `prices`, and those that providers have beside their models. Undefined without any price. */
export function pricesOf({ prices, providers }: Pick<PlatformSettings, "prices" | "providers">): PriceTable | undefined {
  const beside = providers.flatMap(({ id, models }) =>
    (models === "discover" ? [] : models).flatMap((model) => {
      if (typeof model === "string" || !model.prices) return [];
      const { prices: price } = model;
      return [model.id, ...(model.aliases ?? [])].map((name) => ({ provider: id, model: name, from: ALWAYS, ...price }));
    }),
  );
  if (beside.length === 0) return prices;
  return { currency: prices?.currency ?? CURRENCY, models: [...(prices?.models ?? []), ...beside] };
}
