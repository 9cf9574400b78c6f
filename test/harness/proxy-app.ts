import { randomUUID } from "node:crypto";
import { type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { demo } from "@portico/adapters/models/demo";
import type { ModelSettings } from "@portico/adapters/models/http-options";
import { messagesHttp } from "@portico/adapters/models/messages-http";
import { responsesHttp } from "@portico/adapters/models/responses-http";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createMemoryTelemetry, type MemoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { CommandCredential, ProviderLimits } from "@portico/adapters/models/limit-options";
import { type Adapter, type App, createApp, type Live, ports, Secret } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import type { FakeUpstream } from "./fake-upstream.ts";
import { fetchCall } from "./fetch-call.ts";
import { type Call, httpCall, type Reply } from "./http-call.ts";
import { type Members, memberTelemetry, openMembers, serveMembers } from "./members.ts";

/** The key of a test's provider where the test names none: long enough to be looked for in every answer. */
export const PROVIDER_KEY = "sk-provider-key-0123456789abcdef";

export type ProviderSetting =
  | { readonly protocol: "demo"; readonly id?: string }
  | {
      readonly protocol: ports.ModelProtocol | "responses";
      /** Where it calls: a fake upstream, or any base URL. */
      readonly upstream: Pick<FakeUpstream, "baseUrl">;
      /** Default `main`. */
      readonly id?: string;
      /** Default `test-vendor`. */
      readonly type?: string;
      /** Default PROVIDER_KEY; null sends none. */
      readonly credential?: string | null | CommandCredential;
      /** In place of the credential. */
      readonly keys?: readonly string[];
      readonly rotation?: Live<{ readonly keys?: readonly Secret[]; readonly credential?: Secret } | undefined>;
      /** Default `echo-large` and `echo-small`. */
      readonly models?: readonly (string | ModelSettings)[] | "discover";
      readonly headers?: Readonly<Record<string, string>>;
      readonly timeouts?: { readonly connectMs?: number; readonly headersMs?: number; readonly idleMs?: number };
      readonly dialect?: Parameters<typeof chatHttp>[0]["dialect"];
      readonly keyRestMs?: number;
      readonly retry?: ProviderLimits["retry"];
      readonly concurrency?: ProviderLimits["concurrency"];
    };

/** A provider that the test makes itself. */
export interface OwnProvider {
  readonly protocol: "own";
  readonly id: string;
  readonly adapter: Adapter;
}

export interface ProxyOptions {
  readonly providers: readonly (ProviderSetting | OwnProvider)[];
  /** `node`: a listener on 127.0.0.1 (default). `fetch`: `call` and `fetch` go straight to the surface; nothing listens. */
  readonly host?: "node" | "fetch";
  /** Time that only the test moves. Default: the system's. */
  readonly clock?: ManualClock;
  /** Tokens of the instance beside safe tokens. Default: none. */
  readonly ownTokens?: readonly string[];
  /** Ids of providers that are Portico instances. Default: none. */
  readonly instances?: readonly string[];
  /** In place of the one in memory, which keeps every request: `proxy.telemetry` then stays empty. */
  readonly telemetry?: Adapter;
}

/** A model proxy in this process, with real adapters and everything else in memory. */
export interface ProxyApp extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  readonly app: App;
  /** The log lines for its operators. */
  readonly telemetry: MemoryTelemetry;
  /** A new safe token for a provider; default: the first one. */
  token(providerId?: string): Promise<string>;
  /** The same with its id, for revocation. */
  issue(providerId?: string): Promise<{ readonly id: string; readonly value: string }>;
  revoke(tokenId: string): Promise<void>;
  revokeAll(): Promise<void>;
  /** Any request at all; `path` counts from the origin. */
  call(call: Call): Promise<Reply>;
  /** A JSON POST with a safe token of the first provider. A string is sent unchanged. */
  post(path: string, body: unknown, headers?: Call["headers"]): Promise<Reply>;
  /** For client libraries that take a fetch function: the same in both kinds of host. */
  readonly fetch: typeof fetch;
  close(): Promise<void>;
}

/** Start a proxy for these providers. */
export async function startProxy(options: ProxyOptions): Promise<ProxyApp> {
  const telemetry = createMemoryTelemetry();
  const ownTokens = (options.ownTokens ?? []).map((token) => new Secret(token));
  const members = await openMembers({
    // A proxy has no files of its own.
    dataDir: `proxy-${randomUUID()}`,
    stores: () => [memoryRecords(), memorySecrets()],
    engine: "none",
    open: (stores) =>
      createApp({
        name: "proxy-under-test",
        adapters: [
          ...options.providers.map(toAdapter),
          ...stores,
          options.clock ? manualClock({ clock: options.clock }) : systemClock(),
          randomIds(),
          options.telemetry ?? memberTelemetry(telemetry),
        ],
        plugins: [modelProxy({ ownTokens: async () => ownTokens, instances: [...(options.instances ?? [])] })],
      }),
  });
  const { app } = members;
  const host = options.host === "fetch" ? fetchHost(members) : await nodeHost(members);
  const tokens = createSafeTokens({
    records: app.port(ports.records),
    secrets: app.port(ports.secrets),
    clock: app.port(ports.clock),
    ids: app.port(ports.ids),
  });
  const firstProvider = idOf(options.providers[0]);
  const issue = async (providerId = firstProvider) => {
    const { tokenId, token } = await tokens.issue({ providerId });
    return { id: tokenId, value: token.reveal() };
  };
  let ownToken: Promise<{ readonly value: string }> | undefined;
  const close = async () => {
    await host.close();
    await members.close();
  };
  return {
    url: `${host.origin}/v1`,
    app,
    telemetry,
    issue,
    token: async (providerId) => (await issue(providerId)).value,
    revoke: async (tokenId) => void (await tokens.revoke(tokenId)),
    revokeAll: async () => void (await tokens.revokeAll()),
    call: host.call,
    async post(path, body, headers = {}) {
      ownToken ??= issue();
      const { value } = await ownToken;
      const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
      return host.call({
        path,
        headers: { "content-type": "application/json", authorization: `Bearer ${value}`, ...headers },
        body: text,
      });
    },
    fetch: host.fetch,
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Host {
  readonly origin: string;
  call(call: Call): Promise<Reply>;
  readonly fetch: typeof fetch;
  close(): Promise<void>;
}

async function nodeHost(members: Members): Promise<Host> {
  const served = await serveMembers(members, "proxy");
  const { url: origin } = served;
  return {
    origin,
    call: (call) => httpCall(origin, call),
    fetch,
    async close() {
      served.stop();
      await served.end();
    },
  };
}

function fetchHost({ apps }: Members): Host {
  const surfaces = apps.map((app) => app.surface("proxy"));
  let calls = 0;
  const next = () => surfaces[calls++ % surfaces.length]!;
  const origin = "http://proxy.test";
  return {
    origin,
    call: (call) => fetchCall(next().fetch, origin, call),
    async fetch(input, init) {
      const request = new Request(input, init);
      const response = await untilAborted(Promise.resolve(next().fetch(request)), request.signal);
      const body = response.body?.pipeThrough(new TransformStream(), { signal: request.signal }) ?? null;
      return new Response(body, response);
    },
    close: async () => {},
  };
}

/** As with a network between them, a client that gave up does not see the host's later answer. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  work.then(resolve, reject);
  return promise;
}

function toAdapter(setting: ProviderSetting | OwnProvider): Adapter {
  if (setting.protocol === "own") return setting.adapter;
  if (setting.protocol === "demo") return demo(setting.id === undefined ? {} : { id: setting.id });
  const { protocol, upstream, keys, credential = keys ? null : PROVIDER_KEY, ...rest } = setting;
  const open = { messages: messagesHttp, "chat-completions": chatHttp, responses: responsesHttp }[protocol];
  return open({
    id: "main",
    type: "test-vendor",
    models: ["echo-large", "echo-small"],
    ...rest,
    baseUrl: upstream.baseUrl,
    ...(keys && { keys: keys.map((key) => new Secret(key)) }),
    ...(credential !== null && { credential: typeof credential === "string" ? new Secret(credential) : credential }),
  });
}

function idOf(setting: ProviderSetting | OwnProvider | undefined): string {
  return setting?.id ?? (setting?.protocol === "demo" ? "demo" : "main");
}
