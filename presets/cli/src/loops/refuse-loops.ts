import { type App, ports } from "@portico/core";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { serviceTokens } from "@portico/presets/platform/own-token";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { addressLoop, keyLoop, type ProviderLoop } from "./provider-loop.ts";

/** Throws CommandFailed (78) if a provider's key is a token of this instance. */
export async function refuseOwnKeys(app: App, settings: PlatformSettings, providers: readonly ServedProvider[]): Promise<void> {
  // A custom preset may have neither.
  if (!app.has(ports.secrets) || !app.has(ports.records)) return;
  const secrets = app.port(ports.secrets);
  const own = {
    secrets,
    service: await serviceTokens(settings, secrets),
    safe: createSafeTokens({
      records: app.port(ports.records),
      secrets,
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    }),
  };
  await refuse(providers, (provider) => keyLoop(provider, own));
}

/** Throws CommandFailed (78) if a provider's address is the proxy that listens now. */
export async function refuseOwnAddress(
  urls: Readonly<Record<string, string>>,
  address: ListenAddress | undefined,
  providers: readonly ServedProvider[],
): Promise<void> {
  const url = urls["proxy"];
  if (url === undefined) return;
  const { hostname, port } = new URL(url);
  const proxy = { host: hostname, ...address, port: Number(port) };
  await refuse(providers, (provider) => addressLoop(provider, proxy));
}

async function refuse(
  providers: readonly ServedProvider[],
  loopOf: (provider: ServedProvider) => Promise<ProviderLoop | undefined>,
): Promise<void> {
  const lines = await Promise.all(
    providers.map(async (provider) => {
      const loop = await loopOf(provider);
      const found = provider.source ? ` (found: ${provider.source})` : "";
      return loop ? [`Provider "${provider.id}"${found}: ${loop.message}; ${loop.fix}`] : [];
    }),
  );
  if (lines.flat().length > 0) throw new CommandFailed(lines.flat().join("\n"), EXIT.config);
}
