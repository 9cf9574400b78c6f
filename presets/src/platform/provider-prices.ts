import { type PriceTable, pricesAt } from "@portico/adapters/usage/records";
import type { ProviderPrices } from "@portico/plugins/model-proxy/management";

/** The prices of the settings, by provider. */
export function providerPrices(table: PriceTable): ProviderPrices {
  return { currency: table.currency, of: (providerId, at) => pricesAt(table, providerId, at) };
}
