import type { ports } from "@portico/core";
import { TurnFailed } from "./turn-failed.ts";

/** Which provider and model play a turn: the query's model, else the agent's, else the provider's first. Throws TurnFailed. */
export async function chooseModel(
  models: readonly ports.ModelProvider[],
  agent: ports.AgentDefinition,
  asked: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly provider: string; readonly model: string }> {
  const wanted = asked ?? agent.model;
  const named = models.find(({ id }) => id === agent.provider);
  if (agent.provider !== undefined && !named)
    throw new TurnFailed("provider_unavailable", "The agent's provider is not configured");
  const candidates = named ? [named] : models;
  let unlisted: unknown;
  for (const provider of candidates) {
    // The model of the agent's own file is used without asking for a list.
    if (wanted !== undefined && named && asked === undefined) return { provider: provider.id, model: wanted };
    const served = await provider.listModels(signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      if (candidates.length > 1) {
        unlisted = cause;
        return [];
      }
      throw new TurnFailed("provider_unavailable", "The provider does not say which models it serves", { cause });
    });
    const model = wanted === undefined ? served[0] : served.find((each) => each === wanted);
    if (model !== undefined) return { provider: provider.id, model };
  }
  throw new TurnFailed(
    "model_unavailable",
    wanted === undefined ? "No provider serves a model" : "No provider serves this model",
    { cause: unlisted },
  );
}
