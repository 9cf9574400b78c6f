import { fromEnv, secretFromEnv } from "@portico/core";
import * as v from "valibot";

/** The plugin's options, and the environment variables that give them. */
export const sampleNameConfig = v.strictObject({
  token: secretFromEnv("SAMPLE_NAME_TOKEN", "The token. Callers with it may call every route."),
  listed: v.optional(
    fromEnv(
      "SAMPLE_NAME_LISTED",
      v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
      "Maximum number of items in the list.",
    ),
    100,
  ),
});
