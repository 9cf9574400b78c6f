import { fromEnv, isExistingDay } from "@portico/core";
import * as v from "valibot";

const text = () => v.pipe(v.string(), v.nonEmpty());
const price = () => v.pipe(v.number(), v.minValue(0), v.finite());

/** Options of `recordUsage` that presets have as settings of usage. */
export const usageSettings = {
  timeZone: v.optional(
    fromEnv(
      "PORTICO_USAGE_TIME_ZONE",
      v.pipe(text(), v.check(isTimeZone, "an IANA time zone, such as Europe/Berlin")),
      "The time zone in which the days of usage and of daily limits begin.",
    ),
    "UTC",
  ),
};

const prices = v.strictObject({
  currency: v.pipe(text(), v.description("The currency of all prices, such as `USD`. It is only shown.")),
  models: v.pipe(
    v.array(
      v.strictObject({
        provider: v.optional(v.pipe(text(), v.description("The id of a provider. Default: every provider."))),
        model: v.pipe(text(), v.description("The name of the model.")),
        from: v.pipe(
          text(),
          v.isoDate(),
          v.check(isExistingDay, "a day that exists"),
          v.description("The first day of the price, in UTC: `2026-11-01`."),
        ),
        input: v.pipe(price(), v.description("Price of a million input tokens.")),
        output: v.pipe(price(), v.description("Price of a million output tokens.")),
        cachedInput: v.optional(
          v.pipe(price(), v.description("Price of a million input tokens from the provider's cache. Default: `input`.")),
        ),
        cacheWrite: v.optional(
          v.pipe(price(), v.description("Price of a million input tokens written to the provider's cache. Default: `input`.")),
        ),
      }),
    ),
    v.description("Prices by model and first day. Models without a price have no costs."),
  ),
});

/** The prices of models, which presets have as a setting of the instance. */
export const pricesSettings = { prices: v.optional(prices) };

/** The prices of models. */
export type PriceTable = v.InferOutput<typeof prices>;
/** The price of a model from a day on. Prices are for a million tokens. */
export type ModelPrice = PriceTable["models"][number];

function isTimeZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat("en-US", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
