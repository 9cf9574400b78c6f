import { Readable } from "node:stream";
import { type ports, type Scope, withoutEnd } from "@portico/core";
import { createAuthenticatedUpstream } from "./authenticated-upstream.ts";
import { createCredential } from "./create-credential.ts";
import { type CredentialSource, createKnownSecrets } from "./credentials.ts";
import { createDiscovery } from "./discovery.ts";
import { createFetchUpstream } from "./fetch-upstream.ts";
import { createModelFacts } from "../facts/model-facts.ts";
import {
  DEFAULT_TIMEOUTS,
  type HttpProviderOptions,
  modelNames,
  type PostRequest,
  type UpstreamProtocol,
} from "../http-options.ts";
import type { LimitMeter } from "./limit-gauges.ts";
import { LimitReached, limitAnswer } from "./limit-reached.ts";
import { createQueuedUpstream } from "./queued-upstream.ts";
import { createRetryingUpstream } from "./retrying-upstream.ts";
import { createUndiciUpstream } from "./undici-upstream.ts";

const CREDENTIAL_NAME = /key|token|secret|auth|password|credential/i;
/** For a provider that is opened without telemetry. */
const UNHEARD: LimitMeter["telemetry"] = { log: { debug() {}, info() {}, warn() {}, error() {} }, gauge: () => () => {} };
/** Shorter values would occur by chance in ordinary text. */
const SHORTEST_SECRET = 8;

/**
 * A provider behind HTTP with one protocol. `credentials` authenticates its requests; default: the key of the options. Throws when
 * `baseUrl` is not a plain http or https URL.
 */
export function openHttpProvider(
  spoken: UpstreamProtocol,
  options: HttpProviderOptions,
  { clock, telemetry = UNHEARD }: { readonly clock: ports.Clock; readonly telemetry?: LimitMeter["telemetry"] | undefined },
  scope: Scope,
  credentials: CredentialSource = options.credentials?.(clock) ??
    createCredential(spoken.credentialHeader, options, { clock, telemetry, scope }),
): ports.ModelProvider {
  const base = parseBaseUrl(options);
  const prefix = withoutEnd(base.pathname, "/");
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const target = { name: options.id, origin: base.origin, timeouts, clock };
  const connected = options.fetch ? createFetchUpstream(target, options.fetch) : createUndiciUpstream(target, options.outbound);

  let own = lowercased(options.headers ?? {});
  const ownSecrets = createKnownSecrets(secretsOf(own));
  if (options.rotation)
    scope.onClose(
      options.rotation.follow((next) => {
        if (!next) return () => {};
        const rotated = lowercased(next.headers ?? {});
        return () => {
          own = rotated;
          ownSecrets.replace(secretsOf(rotated));
        };
      }),
    );
  const modelHeaders = headersOfModels(options.models);
  const modelSecrets = createKnownSecrets([...modelHeaders.values()].flatMap(secretsOf));
  const { id, retry, concurrency } = options;
  const upstream = createAuthenticatedUpstream(connected, { origin: base.origin, credentials, headers: () => own });
  const meter = { clock, telemetry, scope };
  const retrying = retry ? createRetryingUpstream(upstream, id, retry, meter) : upstream;
  const calls = concurrency ? createQueuedUpstream(retrying, id, concurrency, meter) : retrying;
  scope.onClose(() => calls.close());
  const redact = createRedaction([credentials.secrets, ownSecrets.all, modelSecrets.all], [base.host, base.hostname]);
  const path = `${prefix}${spoken.callPath}`;
  const { models } = options;
  const facts = createModelFacts(spoken.protocol, options);
  const listed = Promise.resolve(models === "discover" ? [] : modelNames(models));
  const discover = createDiscovery(options.id, upstream, { path: `${prefix}/models`, headers: spoken.defaults }, clock);

  const hasLimits = options.keys !== undefined || concurrency !== undefined;
  const answerLimit = (error: unknown): ports.ModelAnswer => {
    if (error instanceof LimitReached) return limitAnswer(spoken.protocol, error);
    throw error;
  };

  return {
    id,
    type: options.type,
    protocol: spoken.protocol,
    facts: facts.of,
    ...(facts.setsParameters && { setsParameters: true }),
    listModels: models === "discover" ? async (signal) => (await discover(signal)).names : () => listed,
    async contextTokens(model, signal) {
      const { context } = facts.settingsOf(model) ?? {};
      return context ?? (models === "discover" ? (await discover(signal)).contextTokens.get(model) : undefined);
    },
    send(call, signal) {
      const ofModel = call.model === undefined ? undefined : modelHeaders.get(call.model);
      if (spoken.exchange) {
        const post: PostRequest = (own, headers, body) =>
          calls.request(
            { method: "POST", path: prefix + own, headers: { ...spoken.defaults, ...headers, ...ofModel }, body },
            signal,
          );
        return spoken.exchange(call, post, signal).catch(answerLimit);
      }
      const headers: Record<string, string> = { ...spoken.defaults, ...call.headers, ...ofModel };
      if (call.body instanceof Readable && call.length !== undefined) headers["content-length"] = String(call.length);
      const answer = calls.request({ method: "POST", path: path + call.query, headers, body: call.body }, signal);
      return hasLimits ? answer.catch(answerLimit) : answer;
    },
    redact,
  };
}

function headersOfModels(models: HttpProviderOptions["models"]): ReadonlyMap<string, Readonly<Record<string, string>>> {
  const headers = new Map<string, Readonly<Record<string, string>>>();
  for (const model of models === "discover" ? [] : models) {
    if (typeof model === "string" || !model.headers) continue;
    for (const name of [model.id, ...(model.aliases ?? [])]) headers.set(name, lowercased(model.headers));
  }
  return headers;
}

/** The values of headers that may be credentials, with and without a scheme before them. */
function secretsOf(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(headers).flatMap(([name, value]) =>
    CREDENTIAL_NAME.test(name) ? [value, value.replace(/^\S+ +/, "")] : [],
  );
}

/** The URL may contain a credential by mistake, so no message repeats it. */
function parseBaseUrl({ id, baseUrl }: HttpProviderOptions): URL {
  const base = URL.parse(baseUrl);
  if (base?.protocol !== "http:" && base?.protocol !== "https:")
    throw new Error(`Provider "${id}": baseUrl must be an address that begins with http:// or https://`);
  // Parts that calls would silently drop are refused: a user, a query, a fragment.
  if (base.username || base.password || base.search || base.hash)
    throw new Error(`Provider "${id}": baseUrl must be an address and a path alone, without user, query or fragment`);
  return base;
}

/** Replaces secrets by `***`. Each source returns the same array until its secrets change. */
function createRedaction(sources: readonly (() => readonly string[])[], always: readonly string[]): (text: string) => string {
  let known: readonly (readonly string[])[] = [];
  let hidden: readonly string[] = [];
  return (text) => {
    if (sources.some((source, index) => source() !== known[index])) {
      known = sources.map((source) => source());
      hidden = [...new Set([...known.flat(), ...always])]
        .filter((secret) => secret.length >= SHORTEST_SECRET)
        .sort((a, b) => b.length - a.length);
    }
    return hidden.reduce((shown, secret) => (shown.includes(secret) ? shown.replaceAll(secret, "***") : shown), text);
  };
}

function lowercased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
