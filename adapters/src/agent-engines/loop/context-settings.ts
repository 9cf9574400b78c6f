import type { ports } from "@portico/core";

/** What the engine's options say of the context of model calls. */
export interface ContextOptions {
  /**
   * Maximum tokens of a model request. If a request would be longer, results of tools are shortened and older turns are summarized.
   * Default: what the provider says of the model, or else 120,000.
   */
  readonly contextTokens?: number | undefined;
  /** The same for single models, by model name. */
  readonly contextTokensOf?: Readonly<Record<string, number>> | undefined;
  /** Whether requests of the Messages protocol contain marks for the provider's prompt cache. Default: true. */
  readonly promptCache?: boolean | undefined;
  /**
   * Whether the model writes a summary of the oldest turns of a conversation when they no longer fit. Without it, they are left out.
   * Default: true.
   */
  readonly summarize?: boolean | undefined;
}

const CONTEXT_TOKENS = 120_000;

/** The settings of one turn. Those of the agent win over those of the engine. */
export function contextSettings({ agent, model }: Pick<ports.AgentTurn, "agent" | "model">, options: ContextOptions) {
  const { contextTokens = CONTEXT_TOKENS, contextTokensOf = {} } = options;
  const ofModel = Object.hasOwn(contextTokensOf, model) ? contextTokensOf[model] : undefined;
  return {
    tokens: agent.context?.tokens ?? ofModel ?? contextTokens,
    promptCache: agent.context?.promptCache ?? options.promptCache ?? true,
    summarize: agent.context?.summarize ?? options.summarize ?? true,
  };
}
