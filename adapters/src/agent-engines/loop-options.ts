import { fromEnv, record } from "@portico/core";
import * as v from "valibot";

/** Characters of a tool's result that a model gets, if no option says otherwise. */
export const RESULT_CHARACTERS = 50_000;

const leastTokens = () => v.pipe(v.number(), v.integer(), v.minValue(1000));
const context = v.strictObject({
  tokens: v.optional(
    fromEnv(
      "PORTICO_AGENT_CONTEXT_TOKENS",
      leastTokens(),
      "Most tokens of a request to a model. Default: 120000, or less if the provider's list says that the model accepts less.",
    ),
  ),
  tokensOf: v.optional(
    v.pipe(record(v.pipe(v.string(), v.nonEmpty()), leastTokens()), v.description("The same for single models, by model name.")),
  ),
  summarize: v.optional(
    fromEnv(
      "PORTICO_AGENT_SUMMARIZE",
      v.boolean(),
      "Whether the model writes a summary of the oldest turns of a conversation when they no longer fit.",
    ),
    true,
  ),
  promptCache: v.optional(
    fromEnv(
      "PORTICO_AGENT_PROMPT_CACHE",
      v.boolean(),
      "Whether requests of the Messages protocol contain marks for the provider's prompt cache.",
    ),
    true,
  ),
  resultCharacters: v.optional(
    fromEnv(
      "PORTICO_AGENT_RESULT_CHARACTERS",
      v.pipe(v.number(), v.integer(), v.minValue(100)),
      "Most characters of the result of a tool that a model gets.",
    ),
    RESULT_CHARACTERS,
  ),
});

/** Options of `loopAgentEngine` that presets have as settings of agents. */
export const loopSettings = { context: v.optional(context, {}) };

/** The engine's options about the context of model calls. */
export type ContextOptions = v.InferInput<typeof context>;
