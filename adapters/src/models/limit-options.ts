import { keySecret, milliseconds } from "@portico/core";
import * as v from "valibot";

/** More keys than one vendor gives to a service. Bounds how often one call is sent. */
const MOST_KEYS = 100;

/** A credential that a program prints. */
const commandSchema = v.strictObject({
  command: v.pipe(
    v.array(
      v.pipe(
        v.string(),
        v.check((word) => !word.includes("\0"), "a string without zero bytes"),
      ),
    ),
    v.minLength(1, "a program and its arguments"),
    v.check(([program]) => program !== "", "a program and its arguments"),
  ),
  /** How long a token is used whose output names no end. */
  forMs: v.optional(milliseconds(1_000), 300_000),
  /** How long the program may run. */
  timeoutMs: v.optional(milliseconds(1), 30_000),
});

/** A credential: a key, or the command that prints a token. */
export const credentialSchema = v.union([keySecret(), commandSchema]);

/** A command that prints a token. */
export type CommandCredential = v.InferOutput<typeof commandSchema>;

/** The limits of one provider. Without these settings, calls are sent at once, and each call is sent once. */
export const limitSettings = {
  keys: v.optional(
    v.pipe(
      v.array(keySecret()),
      v.minLength(1),
      v.maxLength(MOST_KEYS),
      v.description("Several keys of the upstream, used in turn. Replaces `credential`."),
    ),
  ),
  keyRestMs: v.optional(
    v.pipe(
      milliseconds(1_000),
      v.description(
        "How long one of `keys` rests after the upstream refused it, or limited it without `retry-after`. A longer `retry-after` is kept, up to a day.",
      ),
    ),
    60_000,
  ),
  retry: v.optional(
    v.strictObject({
      attempts: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(1),
          v.maxValue(10),
          v.description(
            "How often a call is sent at most, until an answer begins. Without `retry`, each call is sent once. A call whose body is streamed is always sent once.",
          ),
        ),
        3,
      ),
      waitMs: v.optional(
        v.pipe(
          milliseconds(1),
          v.description("The longest first wait without `retry-after`. Each further wait is twice as long."),
        ),
        500,
      ),
      maxWaitMs: v.optional(
        v.pipe(
          milliseconds(1),
          v.description(
            "The longest wait. If `retry-after` asks for a longer wait, the caller gets the upstream's answer at once.",
          ),
        ),
        30_000,
      ),
    }),
  ),
  concurrency: v.optional(
    v.strictObject({
      limit: v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(1_000_000),
        v.description(
          "How many calls are in progress at once, in each process of a cluster. Without `concurrency`, calls have no limit.",
        ),
      ),
      queue: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(0),
          v.maxValue(100_000),
          v.description("How many further calls wait. One more call gets status 429."),
        ),
        100,
      ),
      waitMs: v.optional(
        v.pipe(milliseconds(1), v.description("How long a call waits at most. After this, it gets status 429.")),
        60_000,
      ),
    }),
  ),
};

/** After parsing. */
export type ProviderLimits = v.InferOutput<v.StrictObjectSchema<typeof limitSettings, undefined>>;
