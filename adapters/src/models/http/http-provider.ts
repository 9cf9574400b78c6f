import { Readable } from "node:stream";
import { type ports, type Scope, withoutEnd } from "@portico/core";
import { createDiscovery } from "./discovery.ts";
import { createFetchUpstream } from "./fetch-upstream.ts";
import { DEFAULT_TIMEOUTS, type HttpProviderOptions, type UpstreamProtocol } from "../http-options.ts";
import { createUndiciUpstream } from "./undici-upstream.ts";

const CREDENTIAL_NAME = /key|token|secret|auth|password|credential/i;
/** Shorter values would occur by chance in ordinary text. */
const SHORTEST_SECRET = 8;
/** Rotated credentials whose texts are still redacted: calls in progress began with them. */
const MOST_EARLIER = 16;

/** A provider behind HTTP with one protocol. Throws when `baseUrl` is not a plain http or https URL. */
export function openHttpProvider(
  spoken: UpstreamProtocol,
  options: HttpProviderOptions,
  clock: ports.Clock,
  scope: Scope,
): ports.ModelProvider {
  const base = parseBaseUrl(options);
  const prefix = withoutEnd(base.pathname, "/");
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const target = { name: options.id, origin: base.origin, timeouts, clock };
  const upstream = options.fetch ? createFetchUpstream(target, options.fetch) : createUndiciUpstream(target);
  scope.onClose(() => upstream.close());

  let keys = keysOf(spoken, options);
  let redact = redactor([...keys.secrets, base.host, base.hostname]);
  if (options.rotation) {
    let earlier: readonly string[] = [];
    scope.onClose(
      options.rotation.follow((next) => {
        if (!next) return () => {};
        const rotated = keysOf(spoken, next);
        return () => {
          earlier = [...new Set([...keys.secrets, ...earlier])].slice(0, MOST_EARLIER);
          keys = rotated;
          redact = redactor([...keys.secrets, ...earlier, base.host, base.hostname]);
        };
      }),
    );
  }
  const path = `${prefix}${spoken.callPath}`;
  const { models } = options;
  const listed = Promise.resolve(models === "discover" ? [] : models);
  const discover = createDiscovery(
    options.id,
    upstream,
    () => ({ path: `${prefix}/models`, headers: { ...spoken.defaults, ...keys.headers } }),
    clock,
  );

  return {
    id: options.id,
    type: options.type,
    protocol: spoken.protocol,
    ...(spoken.dialect && { dialect: spoken.dialect(options) }),
    listModels: models === "discover" ? async (signal) => (await discover(signal)).names : () => listed,
    ...(models === "discover" && {
      contextTokens: async (model: string, signal?: AbortSignal) => (await discover(signal)).contextTokens.get(model),
    }),
    send(call, signal) {
      const headers: Record<string, string> = { ...spoken.defaults, ...call.headers, ...keys.headers };
      if (call.body instanceof Readable && call.length !== undefined) headers["content-length"] = String(call.length);
      return upstream.request({ method: "POST", path: path + call.query, headers, body: call.body }, signal);
    },
    redact: (text) => redact(text),
  };
}

/** The headers that are sent with every call, and the parts of them that are secret. */
function keysOf(spoken: UpstreamProtocol, { credential: kept, headers }: Pick<HttpProviderOptions, "credential" | "headers">) {
  const own = lowercased(headers ?? {});
  const credential = kept?.reveal();
  return {
    headers: { ...(credential && spoken.credentialHeader(credential)), ...own },
    secrets: [
      ...(credential ? [credential] : []),
      ...Object.entries(own).flatMap(([name, value]) => (CREDENTIAL_NAME.test(name) ? [value, value.replace(/^\S+ +/, "")] : [])),
    ],
  };
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

function redactor(secrets: readonly string[]): (text: string) => string {
  const hidden = [...new Set(secrets)].filter((secret) => secret.length >= SHORTEST_SECRET).sort((a, b) => b.length - a.length);
  return (text) => hidden.reduce((shown, secret) => (shown.includes(secret) ? shown.replaceAll(secret, "***") : shown), text);
}

function lowercased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
