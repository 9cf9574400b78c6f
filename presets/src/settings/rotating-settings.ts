import type { ProviderSettings } from "@portico/adapters/models/http-options";
import { createLive, type Live, type Secret, selectLive } from "@portico/core";
import type { PlatformSettings } from "./platform.ts";

/** The settings whose secrets may be replaced while an app is open. Other changes of them take effect at the next start. */
export type RotatingSettings = Pick<
  PlatformSettings,
  "agent" | "workflow" | "providers" | "mcpServers" | "cluster" | "https" | "rotation"
>;

/** The rotation of a platform; without `rotating`, nothing changes. */
export function rotationOf(options: {
  readonly settings: RotatingSettings;
  readonly rotating?: Live<RotatingSettings> | undefined;
}): Live<RotatingSettings> {
  return options.rotating ?? createLive(options.settings);
}

/** The credential, keys and headers of a served provider. Undefined if the settings do not serve it any more: it keeps them until the next start. */
export function providerKeys(rotating: Live<RotatingSettings>, providerId: string): Live<ProviderKeys | undefined> {
  return selectLive(rotating, ({ providers }) => {
    const provider = providers.find(({ id, enabled }) => id === providerId && enabled);
    return provider && keysOfProvider(provider);
  });
}

/** The secrets of an MCP server. Undefined if the settings have another server under its name: it keeps them until the next start. */
export function mcpServerSecrets(rotating: Live<RotatingSettings>, id: string): Live<McpServerSettings | undefined> {
  const { command, url } = rotating.current.mcpServers[id] ?? {};
  return selectLive(rotating, ({ mcpServers: { [id]: next } }) =>
    next && next.command === command && next.url === url ? next : undefined,
  );
}

type McpServerSettings = PlatformSettings["mcpServers"][string];

interface ProviderKeys {
  readonly credential?: ProviderSettings["credential"];
  readonly keys?: readonly Secret[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** The credential, keys and headers of a provider, as its adapter takes them. */
export function keysOfProvider({
  credential,
  keys,
  headers,
}: Pick<ProviderSettings, "credential" | "keys" | "headers">): ProviderKeys {
  return {
    credential,
    keys,
    headers: revealedHeaders(headers),
  };
}

/** Headers as an adapter takes them. */
export function revealedHeaders(headers: Readonly<Record<string, Secret>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]));
}
