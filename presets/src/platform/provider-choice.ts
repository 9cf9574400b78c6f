import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { findProviders } from "@portico/adapters/models/well-known";
import type { Adapter, ports, Secret } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";
import type { ProviderSettings } from "../settings/provider.ts";

/** A provider that an instance serves. */
export interface ServedProvider {
  readonly id: string;
  readonly protocol: ports.ModelProtocol;
  readonly models: readonly string[] | "discover";
  /** The real key, for the one tool that may hand it out where the configuration says so. */
  readonly credential?: Secret | undefined;
  /** `configured`, `found` on this machine, or the offline `demo`. */
  readonly origin: "configured" | "found" | "demo";
  /** Where it was found, in words for a person. */
  readonly source?: string;
  readonly adapter: Adapter;
  /** The same, but its list of models is the upstream's own: whoever reads it knows that the upstream takes the credential. */
  readonly asking: Adapter;
}

/**
 * The providers to serve (open points 2). Configured ones are the whole list: a key in the environment never widens what somebody wrote
 * down. Without any, those that this machine has, and always `demo`, so that everything can be tried without a key.
 */
export async function chooseProviders(
  settings: Pick<PlatformSettings, "providers" | "autoProviders">,
  at: { readonly env: Readonly<Record<string, string | undefined>>; readonly signal?: AbortSignal },
): Promise<readonly ServedProvider[]> {
  if (settings.providers.length > 0) return settings.providers.filter((provider) => provider.enabled).map(configured);
  const found = settings.autoProviders ? await findProviders(at) : [];
  return [...found.map(({ protocol, source, options }) => served(protocol, options, { origin: "found", source })), offline()];
}

function configured(provider: ProviderSettings): ServedProvider {
  const { id, protocol, baseUrl, credential, models, timeouts } = provider;
  const headers = Object.fromEntries(Object.entries(provider.headers).map(([name, value]) => [name, value.reveal()]));
  return served(
    protocol,
    { id, type: provider.type ?? id, baseUrl, credential, models, headers, timeouts },
    { origin: "configured" },
  );
}

function served(
  protocol: ports.ModelProtocol,
  options: Parameters<typeof chatHttp>[0],
  about: Pick<ServedProvider, "origin" | "source">,
): ServedProvider {
  const adapter = protocol === "messages" ? messagesHttp : chatHttp;
  const { id, models, credential } = options;
  return {
    ...about,
    id,
    protocol,
    models,
    credential,
    adapter: adapter(options),
    asking: adapter({ ...options, models: "discover" }),
  };
}

function offline(): ServedProvider {
  const adapter = demo({});
  return { id: "demo", protocol: "messages", models: ["demo"], origin: "demo", adapter, asking: adapter };
}
