import { existsSync } from "node:fs";
import { systemClock } from "@portico/adapters/clock/system";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { createApp, ports } from "@portico/core";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { serviceTokens } from "@portico/presets/platform/own-token";
import { chooseProviders, isInstance, type ServedProvider } from "@portico/presets/platform/provider-choice";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints, readPorts } from "../endpoints-file.ts";
import { storesElsewhere } from "../instance-stores.ts";
import { addressLoop, type InstanceTokens, keyLoop } from "../refuse-loops.ts";
import { createProviderCalls } from "./call-providers.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";
import { tryListen } from "./check-listeners.ts";

/** Longest wait for a provider's list of models. */
const ANSWER_MS = 10_000;

/**
 * Checks every provider that would be served: it is not this instance itself, it answers, it accepts its credential, and it has the configured
 * models. With `call`, one of its models also answers one small call.
 */
export async function checkProviders(
  settings: PlatformSettings,
  directory: DataDirectory,
  { call }: { readonly call: boolean },
): Promise<readonly Finding[]> {
  const providers = await chooseProviders(settings, { env: process.env });
  if (providers.length === 0)
    return [wrong("providers", "every configured provider is switched off", 'set "enabled": true for one of them')];
  const proxy = await ownProxy(settings, directory);
  const callProvider = createProviderCalls();
  return withOwnTokens(settings, directory, { withSafeTokens: providers.some(isInstance) }, async (own) => {
    const check = async (provider: ServedProvider): Promise<readonly Finding[]> => {
      const about = `provider ${provider.id}`;
      const loop = (await addressLoop(provider, proxy)) ?? (await keyLoop(provider, own));
      // A provider that leads back to this instance is not called: the running service would call itself.
      if (loop) return [wrong(about, `${loop.message}${foundAt(provider)}`, loop.fix)];
      const instance = isInstance(provider)
        ? [doubtful(about, "its key is a safe token: the provider is another Portico instance")]
        : [];
      return [...instance, ...(await checkProvider(provider)), ...(call ? await callProvider(provider) : [])];
    };
    return (await Promise.all(providers.map(check))).flat();
  });
}

/** Where the proxy of this instance listens: the address of the running service, or the address that a start would open. */
async function ownProxy({ proxy }: PlatformSettings, directory: DataDirectory): Promise<ListenAddress> {
  const { listen, publicUrl } = proxy;
  const running = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners["proxy"]?.url : undefined;
  if (running !== undefined) return { ...listen, port: Number(new URL(running).port), publicUrl };
  const port = listen.port ?? readPorts(directory)["proxy"] ?? 0;
  // A port in use by another program is not this instance's port: the check of ports reports it.
  const isFree = port !== 0 && (await tryListen(listen.host, port)) === undefined;
  return { ...listen, port: isFree ? port : 0, publicUrl };
}

async function checkProvider(provider: ServedProvider): Promise<readonly Finding[]> {
  const about = `provider ${provider.id}`;
  if (provider.origin === "demo")
    return [fine(about, "no provider is configured: the offline demo model is available for trying things")];
  const found = foundAt(provider);
  if (!provider.hasList)
    return [
      fine(
        about,
        `has no list of models that could be asked: its credential was not checked, which portico doctor --call does${found}`,
      ),
    ];
  const app = await createApp({ name: "doctor", adapters: [systemClock(), provider.asking] });
  try {
    const [asking] = app.port(ports.models);
    const listed = (await asking?.listModels(AbortSignal.timeout(ANSWER_MS))) ?? [];
    const missing = provider.models === "discover" ? [] : provider.models.filter((model) => !listed.includes(model));
    if (missing.length === 0) return [fine(about, `answers, accepts its credential, and lists ${listed.length} models${found}`)];
    return [
      wrong(
        about,
        `answers, but its list of models does not contain ${missing.join(", ")}${found}`,
        `correct its "models", or set it to "discover"; some upstreams also serve models that they do not list`,
      ),
    ];
  } catch (error) {
    return [failure(about, provider, error)];
  } finally {
    await app.close();
  }
}

function foundAt({ source }: ServedProvider): string {
  return source ? ` (found: ${source})` : "";
}

/** The port's errors contain neither address nor credential. The messages of other errors are not shown. */
function failure(about: string, provider: ServedProvider, error: unknown): Finding {
  const isKnown = error instanceof ports.ModelUnreachable || error instanceof ports.ModelTimeout;
  const message = isKnown ? error.message : `did not return its list of models within ${ANSWER_MS / 1000} s`;
  // Calls do not need the list: an upstream whose models are configured works without it.
  if (provider.models !== "discover" && /\b(404|405)\b/.test(message))
    return fine(about, `${message}: its credential was not checked`);
  const isRefused = /\b(401|403)\b/.test(message);
  const where = provider.origin === "found" ? "its environment variable" : "its `credential`";
  return wrong(
    about,
    message,
    isRefused ? `correct the key in ${where}` : "check its `baseUrl`, the network connection, and that it is running",
  );
}

/**
 * Calls `use` with the tokens of this instance. Creates nothing. Opens the records only if safe tokens are needed, because opening migrates a store
 * of an earlier version. A store that cannot be opened counts as empty; other checks report it.
 */
async function withOwnTokens<T>(
  settings: PlatformSettings,
  directory: DataDirectory,
  { withSafeTokens }: { readonly withSafeTokens: boolean },
  use: (own: InstanceTokens) => Promise<T>,
): Promise<T> {
  const areElsewhere = storesElsewhere(settings, [ports.records, ports.secrets]).length > 0;
  const hasRecords = !areElsewhere && withSafeTokens && existsSync(directory.records);
  const isOpened = !areElsewhere && (hasRecords || existsSync(directory.credentials));
  const stored = sqliteStore({ dir: directory.path, ports: [ports.secrets, ...(hasRecords ? [ports.records] : [])] });
  const app =
    (isOpened ? await createApp({ name: "doctor", adapters: stored }).catch(() => undefined) : undefined) ??
    (await createApp({ name: "doctor", adapters: [memorySecrets()] }));
  try {
    const secrets = app.port(ports.secrets);
    const service = await serviceTokens(settings, secrets).catch(() => []);
    return await use({ secrets, service, safe: safeTokensOf() });
  } finally {
    await app.close();
  }

  function safeTokensOf() {
    if (!app.has(ports.records)) return undefined;
    return createSafeTokens({
      records: app.port(ports.records),
      secrets: app.port(ports.secrets),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
  }
}
