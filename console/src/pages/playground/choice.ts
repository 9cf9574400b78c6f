import type { Provider } from "../providers/ProviderTable.svelte";
import type { Protocol } from "./conversation.ts";

/** What the address of the page says. It has no content of a conversation, so it can be shared. */
export interface Choice {
  readonly provider: Provider;
  readonly model: string;
  readonly protocol: Protocol;
}

/** The choice of an address. What it does not say, or says of a provider that does not exist, is the first provider's. */
export function readChoice(query: URLSearchParams, providers: readonly [Provider, ...Provider[]]): Choice {
  const provider = providers.find(({ id }) => id === query.get("provider")) ?? providers[0];
  const protocol = query.get("protocol");
  return {
    provider,
    model: query.get("model") ?? provider.models?.[0] ?? "",
    protocol: protocol === "messages" || protocol === "chat-completions" ? protocol : provider.protocol,
  };
}

/** The query of the address. */
export function writeChoice({ provider, model, protocol }: Choice): string {
  return new URLSearchParams({ provider: provider.id, model, protocol }).toString();
}
