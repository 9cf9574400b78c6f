import type { Provider } from "../providers/ProviderTable.svelte";
import type { Protocol } from "./conversation.ts";

export interface ModelChoice {
  readonly provider: Provider;
  readonly model: string;
}

/** What the address of the page says. It has no content of a conversation, so it can be shared. */
export interface Choice extends ModelChoice {
  readonly protocol: Protocol;
  /** The model to which each message also goes. */
  readonly second: ModelChoice | undefined;
}

type Providers = readonly [Provider, ...Provider[]];

/** The choice of an address. What it does not say, or says of a provider that does not exist, is the first provider's. */
export function readChoice(query: URLSearchParams, providers: Providers): Choice {
  const first = readModel(query.get("provider"), query.get("model"), providers);
  const protocol = query.get("protocol");
  const second = query.get("secondProvider");
  return {
    ...first,
    protocol: protocol === "messages" || protocol === "chat-completions" ? protocol : first.provider.protocol,
    second: second === null ? undefined : readModel(second, query.get("secondModel"), providers),
  };
}

function readModel(id: string | null, model: string | null, providers: Providers): ModelChoice {
  const provider = providers.find((each) => each.id === id) ?? providers[0];
  return { provider, model: model ?? provider.models?.[0] ?? "" };
}

/** The query of the address. */
export function writeChoice({ provider, model, protocol, second }: Choice): string {
  const also = second && { secondProvider: second.provider.id, secondModel: second.model };
  return new URLSearchParams({ provider: provider.id, model, protocol, ...also }).toString();
}

/** The first model that differs from a choice, for a comparison. The same model if there is no other. */
export function anotherModel({ provider, model }: ModelChoice, providers: Providers): ModelChoice {
  const own = provider.models?.find((each) => each !== model);
  if (own !== undefined) return { provider, model: own };
  const other = providers.find(({ id }) => id !== provider.id) ?? provider;
  return { provider: other, model: other.models?.[0] ?? "" };
}
