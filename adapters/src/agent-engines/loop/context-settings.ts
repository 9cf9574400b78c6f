import type { ports } from "@portico/core";
import type { ContextOptions } from "../loop-options.ts";

const CONTEXT_TOKENS = 120_000;
/** Tokens that the list of a provider allows and a request leaves to the answer: this many, but at most a quarter. */
const ANSWER_TOKENS = 4096;

/** How long a turn waits for the provider's list. If the request is too long, the provider says so. */
const LIST_MS = 1000;

export interface ContextSettings {
  readonly tokens: number;
  readonly promptCache: boolean;
  readonly summarize: boolean;
}

/**
 * The settings of one turn. Those of the agent win over those of the engine, and both over the provider's list. A list that cannot be read
 * within a second counts as one that says nothing. Throws the signal's reason.
 */
export async function contextSettings(
  { agent, model }: Pick<ports.AgentTurn, "agent" | "model">,
  { tokens, tokensOf = {}, ...options }: ContextOptions,
  given: { readonly provider: ports.ModelProvider; readonly clock: ports.Clock; readonly signal: AbortSignal },
): Promise<ContextSettings> {
  const ofModel = Object.hasOwn(tokensOf, model) ? tokensOf[model] : undefined;
  return {
    tokens: agent.context?.tokens ?? ofModel ?? tokens ?? Math.min(CONTEXT_TOKENS, await listed(given, model)),
    promptCache: agent.context?.promptCache ?? options.promptCache ?? true,
    summarize: agent.context?.summarize ?? options.summarize ?? true,
  };
}

async function listed({ provider, clock, signal }: Parameters<typeof contextSettings>[2], model: string): Promise<number> {
  const late = new AbortController();
  const timer = clock.after(LIST_MS, () => late.abort());
  const tokens = await provider.contextTokens?.(model, AbortSignal.any([signal, late.signal])).catch(() => undefined);
  timer.cancel();
  signal.throwIfAborted();
  return tokens === undefined ? Number.POSITIVE_INFINITY : tokens - Math.min(ANSWER_TOKENS, Math.floor(tokens / 4));
}
