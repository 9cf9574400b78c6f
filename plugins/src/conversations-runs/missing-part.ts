import type { ports } from "@portico/core";

/** What the turns of an agent need and the instance does not have. */
export type MissingPart = "engine" | "provider" | "model";

/** How long the lists of agents wait for the providers' lists of models. */
const LIST_MS = 1_000;

/**
 * Says of agents what their turns would lack. A model that no provider lists counts as missing only if the agent names no provider: otherwise
 * the turn asks the provider. Providers are asked for their models at most once. A list that cannot be read proves nothing.
 */
export function findMissingParts(
  { engines, models }: { readonly engines: readonly ports.AgentEngine[]; readonly models: readonly ports.ModelProvider[] },
  signal: AbortSignal,
): (agent: ports.AgentDefinition) => Promise<MissingPart | undefined> {
  let lists: Promise<readonly (readonly string[] | undefined)[]> | undefined;
  const readLists = () => {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(LIST_MS)]);
    return Promise.all(models.map((provider) => provider.listModels(limited).catch(() => undefined)));
  };

  return async ({ engine, provider, model }) => {
    if (engines.every(({ id }) => id !== engine)) return "engine";
    if (models.length === 0 || (provider !== undefined && models.every(({ id }) => id !== provider))) return "provider";
    if (model === undefined || provider !== undefined) return undefined;
    lists ??= readLists();
    return (await lists).every((list) => list !== undefined && !list.includes(model)) ? "model" : undefined;
  };
}
