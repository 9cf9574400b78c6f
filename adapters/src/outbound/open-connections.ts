import type { LookupFunction } from "node:net";
import * as tls from "node:tls";
import type { Agent, buildConnector, Dispatcher, Pool } from "undici/index.js";
import { keptConnections, noted } from "./kept-connections.ts";
import type { OutboundOptions } from "./outbound-options.ts";

/** Milliseconds. 0 is no limit. */
interface Limits {
  /** Until a connection is open: with a proxy, to it and through it. */
  readonly connectMs: number;
  readonly headersMs: number;
  readonly idleMs: number;
}

/** What connections are opened with. */
export interface ConnectionsOptions extends Limits {
  readonly outbound?: OutboundOptions | undefined;
  /** Resolves the names of servers that are called directly, for connections to an origin. Default: the machine's resolver. */
  readonly lookup?: ((origin: URL) => LookupFunction) | undefined;
  /** The only origin that is called. It saves the choice among pools. */
  readonly origin?: string | undefined;
}

type Connect = buildConnector.connector;

/** A proxy that could not be reached, or that refused a connection: `PROXY_ECONNREFUSED`, `PROXY_407`. The message names no address. */
class ProxyFailed extends Error {
  override readonly name = "ProxyFailed";
  readonly code: string;

  constructor(code: string, cause: Error) {
    super(`The outbound proxy failed (${code})`, { cause });
    this.code = code;
  }
}

/** Never sent to a proxy: the proxy's own loopback is another machine. */
const LOOPBACK = ["localhost", ".localhost", "127.0.0.1", "::1"];

/**
 * Connections of undici, pooled and kept alive, of HTTP/1.1. Those to hosts behind the proxy go through it: by CONNECT for `https:`, with
 * the whole address in the request for `http:` (RFC 9110, 9.3.6 and RFC 9112, 3.2.2). Loads undici, which takes twice as long as starting
 * Node.js, so callers wait for their first request.
 */
export async function openConnections(options: ConnectionsOptions): Promise<Dispatcher> {
  // Imported by its file: for the name "undici", Bun gives a module of its own, whose pools cannot dispatch.
  const { Agent, Client, EnvHttpProxyAgent, Pool } = await import("undici/index.js");
  const { outbound = {}, connectMs, headersMs, idleMs, lookup, origin } = options;
  const trusted = outbound.ca ? { ca: [...authorities(), outbound.ca.reveal()] } : {};
  const kept = keptConnections(Client);

  const poolOf = (to: string | URL, connect?: Connect): Pool =>
    new Pool(to, {
      ...{ allowH2: false, headersTimeout: headersMs, bodyTimeout: idleMs, factory: kept },
      connect: connect ?? { timeout: connectMs, ...trusted, ...(lookup && { lookup: lookup(new URL(to)) }) },
    });
  if (!outbound.proxy && origin !== undefined) return poolOf(origin);

  // The connect function of a pool behind a proxy is the proxy's.
  const factory: Agent.Options["factory"] = (to, { connect }: Pool.Options) =>
    poolOf(to, typeof connect === "function" ? named(connect as Connect) : undefined);
  if (!outbound.proxy) return new Agent({ factory });
  const proxy = outbound.proxy.reveal();
  return new EnvHttpProxyAgent({
    ...{ factory, httpProxy: proxy, httpsProxy: proxy, noProxy: [...LOOPBACK, ...(outbound.noProxy ?? [])].join() },
    ...{ connectTimeout: connectMs, requestTls: trusted, proxyTls: trusted },
    // A proxy may accept the connection and never open the way.
    clientFactory: (to: URL, given: object) => new Pool(to, { ...given, headersTimeout: connectMs, bodyTimeout: connectMs }),
  } as ConstructorParameters<typeof EnvHttpProxyAgent>[0]).compose(
    (dispatch) => (request, handler) => dispatch(request, noted(handler, { explained: proxyRefusal })),
  );
}

/** An own list replaces that of Node.js, which contains the authorities of NODE_EXTRA_CA_CERTS and of the system, if it reads them. */
function authorities(): readonly string[] {
  return tls.getCACertificates?.("default") ?? tls.rootCertificates;
}

/** Tells failures of the proxy from those of the server behind it. */
function named(connect: Connect): Connect {
  return (options, callback) =>
    connect(options, (...[error, socket]) => (error ? callback(proxyFault(error), null) : callback(null, socket!)));
}

function proxyFault(error: Error): Error {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_CONNECT_TIMEOUT") return new ProxyFailed("PROXY_TIMEOUT", error);
  if (code === "UND_ERR_PRX_CONN") return new ProxyFailed("PROXY_CLOSED", error);
  return syscall === "connect" || syscall === "getaddrinfo" ? new ProxyFailed(`PROXY_${code}`, error) : proxyRefusal(error);
}

/** undici tells of a refusal only in words: at CONNECT, and as an invalid argument where a proxy asks for a password at `http:`. */
function proxyRefusal(error: Error): Error {
  const status = /^Proxy (?:response|Authentication Required) \((\d{3})\)/.exec(error.message)?.[1];
  return status === undefined ? error : new ProxyFailed(`PROXY_${status}`, error);
}
