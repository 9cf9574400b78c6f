import { aiSdk } from "@portico/adapters/models/ai-sdk";
import { azure } from "@portico/adapters/models/azure";
import { chatHttp } from "@portico/adapters/models/chat-http";
import type { HttpProviderOptions, ProviderSettings } from "@portico/adapters/models/http-options";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { responsesHttp } from "@portico/adapters/models/responses-http";
import { type Adapter, ConfigUnusable, type ports, Secret } from "@portico/core";
import { ifInstalled } from "./if-installed.ts";

/** The adapter of one configured provider. */
export interface ProviderAdapter {
  /** The protocol that the adapter speaks to its callers. */
  readonly protocol: ports.ModelProtocol;
  readonly adapter: Adapter;
  /** The same, without retries and queue, and with the upstream's own list of models if it has one. */
  readonly asking: Adapter;
  /** Whether the upstream has a list of the models that it serves. */
  readonly hasList: boolean;
}

/** What the adapters of a provider share. */
export type SharedOptions = Omit<HttpProviderOptions, "baseUrl">;

/** For checks: each call is sent once. */
const ONCE = { retry: undefined, concurrency: undefined };

const CLOUDS = "@portico/clouds";

/** The adapter of a provider of either published protocol. */
export function httpAdapter(protocol: ports.ModelProtocol, options: HttpProviderOptions): ProviderAdapter {
  const adapter = protocol === "messages" ? messagesHttp : chatHttp;
  const asking = adapter({ ...options, ...ONCE, models: "discover" });
  return { protocol, adapter: adapter(options), asking, hasList: true };
}

/**
 * The adapter of a configured provider. Those of clouds are loaded when they are configured. Throws ConfigUnusable if their package is not
 * installed.
 */
export async function providerAdapter(provider: ProviderSettings, shared: SharedOptions): Promise<ProviderAdapter> {
  const { protocol, baseUrl = "", region = "", project = "", profile, keyFile, apiVersion } = provider;
  const options = { ...shared, models: shared.models === "discover" ? [] : shared.models };
  const rest = provider.baseUrl === undefined ? options : { ...options, baseUrl };
  switch (protocol) {
    case "bedrock": {
      const { bedrock } = await load(provider, CLOUDS, () => import("@portico/clouds/models/bedrock"));
      return inCloud("messages", bedrock, { ...rest, region, profile });
    }
    case "vertex": {
      const { vertex } = await load(provider, CLOUDS, () => import("@portico/clouds/models/vertex"));
      return inCloud("messages", vertex, { ...rest, region, project, keyFile });
    }
    case "azure": {
      const credentials = await entraCredentials(provider);
      return inCloud("chat-completions", azure, { ...options, ...credentials, baseUrl, apiVersion });
    }
    case "ai-sdk":
      return throughPackage(provider, shared);
    case "responses": {
      const called = { ...shared, ...(await entraCredentials(provider)), baseUrl };
      const asking = responsesHttp({ ...called, ...ONCE, models: "discover" });
      return { protocol: "messages", adapter: responsesHttp(called), asking, hasList: true };
    }
    default:
      return httpAdapter(protocol, { ...shared, ...(await entraCredentials(provider)), baseUrl });
  }
}

/** The adapter loads the package when it opens. The package lists no models. */
function throughPackage(provider: ProviderSettings, { type, outbound }: SharedOptions): ProviderAdapter {
  const { id, package: name = "", create, options, providerOptions, timeouts } = provider;
  const models = provider.models === "discover" ? [] : provider.models.filter((model) => typeof model === "string");
  const credential = provider.credential instanceof Secret ? provider.credential : undefined;
  const silenceMs = timeouts.headersMs;
  const adapter = aiSdk({ id, type, models, provider: name, create, options, credential, providerOptions, silenceMs, outbound });
  return { protocol: "messages", adapter, asking: adapter, hasList: false };
}

function inCloud<Options extends object>(
  protocol: ports.ModelProtocol,
  adapter: (options: Options) => Adapter,
  options: Options,
): ProviderAdapter {
  return { protocol, adapter: adapter(options), asking: adapter({ ...options, ...ONCE }), hasList: false };
}

async function entraCredentials(provider: ProviderSettings): Promise<Pick<HttpProviderOptions, "credentials">> {
  if (!provider.entra) return {};
  const { defaultEntraCredential, entraToken } = await load(provider, CLOUDS, () => import("@portico/clouds/models/entra-token"));
  const credential = await defaultEntraCredential();
  if (!credential) throw missing(provider, "entra", "@azure/identity");
  return { credentials: entraToken({ provider: provider.id, baseUrl: provider.baseUrl ?? "", credential }) };
}

async function load<T>(provider: ProviderSettings, name: string, importing: () => Promise<T>): Promise<T> {
  const found = await ifInstalled(name, importing);
  if (found === undefined) throw missing(provider, provider.entra ? "entra" : "protocol", name);
  return found;
}

function missing({ id, protocol }: ProviderSettings, key: "entra" | "protocol", name: string): ConfigUnusable {
  return new ConfigUnusable([
    {
      path: `providers (${id}).${key}`,
      expected: `the installed package ${name}, which ${key === "entra" ? "`entra`" : `the protocol "${protocol}"`} needs`,
      found: "no such package",
      hint: `install it: npm install ${name}`,
    },
  ]);
}
