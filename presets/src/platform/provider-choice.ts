import { demo } from "@portico/adapters/models/demo";
import { type HttpProviderOptions, modelNames, type ProviderSettings } from "@portico/adapters/models/http-options";
import { findProviders } from "@portico/adapters/models/well-known";
import { type Adapter, type Live, type ports, Secret } from "@portico/core";
import { SAFE_TOKEN_PREFIX } from "@portico/plugins/model-proxy/safe-tokens";
import type { PlatformSettings } from "../settings/platform.ts";
import { httpAdapter, type ProviderAdapter, providerAdapter } from "./provider-adapter.ts";
import { keysOfProvider, providerKeys, revealedHeaders, type RotatingSettings } from "../settings/rotating-settings.ts";

/** A provider that an instance serves. */
export interface ServedProvider {
  readonly id: string;
  readonly protocol: ports.ModelProtocol;
  readonly models: readonly string[] | "discover";
  /**
   * The real key, for the one tool that may return it if the configuration allows that. Undefined for a provider with several keys, and for
   * one whose credential a command prints.
   */
  readonly credential?: Secret | undefined;
  /** The upstream's address. Undefined for `demo`, which makes no calls, and for clouds whose address follows from their region. */
  readonly baseUrl?: string | undefined;
  /** All values that may be keys: `credential`, `keys`, and the configured headers. */
  readonly keys: readonly Secret[];
  /** `configured`, `found` on this machine, or the offline `demo`. */
  readonly origin: "configured" | "found" | "demo";
  /** Where it was found, as text for a person. */
  readonly source?: string;
  readonly adapter: Adapter;
  /**
   * The same, without retries and queue, and with the upstream's own list of models if it has one. Reading this list checks that the upstream
   * accepts the credential.
   */
  readonly asking: Adapter;
  /** Whether the upstream has a list of the models that it serves. */
  readonly hasList: boolean;
}

/**
 * The providers to serve (open points 2). If some are configured, only these are served: a key in the environment adds no provider to a configured
 * list. Otherwise the providers that this machine has, and always `demo`, so that everything can be tried without a key.
 */
export async function chooseProviders(
  settings: Pick<PlatformSettings, "providers" | "autoProviders"> & Partial<Pick<PlatformSettings, "outbound">>,
  at: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal?: AbortSignal;
    /** The settings again, if their providers' keys may be replaced while an app is open. Default: they never change. */
    readonly rotating?: Live<RotatingSettings>;
    /** IDs of the providers that another process of the instance found on this machine. Default: they are looked for. */
    readonly found?: readonly string[];
  },
): Promise<readonly ServedProvider[]> {
  const { rotating } = at;
  const { outbound } = settings;
  if (settings.providers.length > 0)
    return Promise.all(
      settings.providers.filter(({ enabled }) => enabled).map((provider) => configured(provider, outbound, rotating)),
    );
  const found = settings.autoProviders ? await findProviders(at) : [];
  return [
    ...found.map(({ protocol, source, options }) =>
      served(httpAdapter(protocol, { ...options, outbound }), options, { origin: "found", source, baseUrl: options.baseUrl }),
    ),
    offline(),
  ];
}

/** Whether a provider's key is a safe token. If so, the provider is a Portico instance. */
export function isInstance(provider: ServedProvider): boolean {
  return keysOf(provider).some((key) => key.startsWith(SAFE_TOKEN_PREFIX));
}

/** The keys themselves, also from headers with a scheme before the key. */
export function keysOf({ keys }: ServedProvider): readonly string[] {
  return keys.map((key) => key.reveal().split(/\s+/).at(-1) ?? "");
}

async function configured(
  provider: ProviderSettings,
  outbound: PlatformSettings["outbound"] | undefined,
  rotating: Live<RotatingSettings> | undefined,
): Promise<ServedProvider> {
  const { id, type = id, timeouts, dialect, retry, concurrency, keyRestMs, baseUrl } = provider;
  const rotation = rotating && providerKeys(rotating, id);
  const models =
    provider.models === "discover"
      ? provider.models
      : provider.models.map((model) =>
          typeof model === "string" ? model : { ...model, headers: revealedHeaders(model.headers ?? {}) },
        );
  const shared = {
    id,
    type,
    models,
    timeouts,
    outbound,
    dialect,
    retry,
    concurrency,
    keyRestMs,
    ...keysOfProvider(provider),
    rotation,
  };
  return served(await providerAdapter(provider, shared), shared, { origin: "configured", baseUrl });
}

function served(
  { protocol, adapter, asking, hasList }: ProviderAdapter,
  options: Pick<HttpProviderOptions, "id" | "models" | "credential" | "keys" | "headers" | "rotation">,
  about: Pick<ServedProvider, "origin" | "source" | "baseUrl">,
): ServedProvider {
  const { id, models, rotation } = options;
  return {
    ...about,
    id,
    protocol,
    models: models === "discover" ? models : modelNames(models),
    get credential() {
      return keyOf((rotation?.current ?? options).credential);
    },
    get keys() {
      const { credential, keys = [], headers = {} } = rotation?.current ?? options;
      const key = keyOf(credential);
      return [...(key ? [key] : []), ...keys, ...Object.values(headers).map((value) => new Secret(value))];
    },
    adapter,
    asking,
    hasList,
  };
}

/** Undefined for a command, whose token changes. */
function keyOf(credential: ProviderSettings["credential"]): Secret | undefined {
  return credential instanceof Secret ? credential : undefined;
}

function offline(): ServedProvider {
  const adapter = demo({});
  return {
    id: "demo",
    protocol: "messages",
    models: ["demo"],
    origin: "demo",
    keys: [],
    adapter,
    asking: adapter,
    hasList: true,
  };
}
