import { channel } from "node:diagnostics_channel";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Server as SecureServer } from "node:tls";
import type { App } from "@portico/core";
import { attach, toNodeHandler } from "@portico/core/node";
import type { ListenAddress } from "@portico/presets/settings/listen";
import { tryListen } from "./doctor/check-listeners.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { Certificate, Https } from "./certificate.ts";

export interface Listeners {
  /** Surface name to URL, in the order of the app's surfaces. */
  readonly urls: Readonly<Record<string, string>>;
  /**
   * Refuse new requests, let requests in flight finish for up to `graceMs`, then abort them. Event streams and realtime connections would never
   * finish: event streams are ended when `working` resolves, realtime connections when nothing else is left. Their clients reconnect later. Returns
   * the number of other requests that were aborted.
   */
  drain(graceMs: number, working?: Promise<unknown>): Promise<number>;
  /** Show another certificate to the TLS connections that are opened later. Listeners without TLS ignore it. */
  replaceCertificate(certificate: Certificate): void;
}

/** Where a surface without an address listens (open points 1). */
const THIS_MACHINE: ListenAddress = { host: "127.0.0.1" };

/** Timeout of a request's head. Bodies and responses have no such timeout: each area has its own idle timeouts. */
const HEADERS_MS = 30_000;
/** Longer than load balancers usually keep an idle connection, so that the load balancer closes first. */
const KEEP_ALIVE_MS = 75_000;

/** Time for event streams and realtime connections to send the last events of finished work. */
const LAST_WORDS_MS = 250;

/** Interval of the checks for idle connections while a listener drains. */
const SWEEP_MS = 25;

/** The path in a surface's URL. Clients of the proxy also need the version (open points 1). */
const BASE_PATHS: Readonly<Record<string, string>> = { proxy: "/v1" };

/** The surface that drains last. */
const PROBES = "probes";

interface OpenListeners {
  readonly addresses: Readonly<Record<string, ListenAddress>>;
  /** The ports of the last start, for addresses without a port. */
  readonly earlierPorts?: Readonly<Record<string, number>>;
  /** Called if the port of the last start cannot be used, with the port that is used instead. */
  readonly onPortLost?: (surface: string, earlier: number, port: number) => void;
  /** Listen with TLS. */
  readonly https?: Https | undefined;
  /** Default: all surfaces of the app. */
  readonly surfaces?: readonly string[] | undefined;
  /** The surface at whose address other processes of the instance listen, too. Default: none. */
  readonly shared?: { readonly surface: string; readonly as: Sharing } | undefined;
}

/**
 * How a process listens at an address that several processes share: the system gives each connection to one of them. `first`: the address must be
 * free. `further`: the first process listens there already.
 */
type Sharing = "first" | "further";

/** Open one listener per surface. Throws CommandFailed (69) if the port of an address is in use; never uses another port instead. */
export async function openListeners(
  app: App,
  { addresses, https, surfaces, earlierPorts = {}, onPortLost, shared }: OpenListeners,
): Promise<Listeners> {
  const open: Listener[] = [];
  let secured = https;
  const onCertificate = (certificate: Certificate) => {
    // The first listener creates the certificate, the others use the same.
    if (!secured || secured.certificate) return;
    secured.keep(certificate);
    secured = { ...secured, certificate };
  };
  const drain = async (graceMs: number, working: Promise<unknown> = Promise.resolve()) => {
    const serving = open.filter(({ surface }) => surface !== PROBES);
    const cut = await Promise.all(serving.map((listener) => listener.drain(graceMs, working)));
    // The probes stay open until here: they report that the process lives and takes no new requests.
    await Promise.all(open.filter((listener) => !serving.includes(listener)).map((listener) => listener.drain(0)));
    return cut.reduce((sum, each) => sum + each, 0);
  };
  try {
    for (const surface of app.surfaces.filter((each) => surfaces?.includes(each) ?? true)) {
      const address = addresses[surface] ?? THIS_MACHINE;
      const sharing = shared?.surface === surface ? shared.as : undefined;
      const openAt = (port: number) =>
        openListener(app, surface, { ...address, port }, { https: secured, onCertificate, sharing });
      const earlier = address.port === undefined ? earlierPorts[surface] : undefined;
      const again = earlier === undefined ? undefined : await openAt(earlier).catch(ignoreUnusable);
      const listener = again ?? (await openAt(address.port ?? 0));
      open.push(listener);
      if (earlier !== undefined && !again) onPortLost?.(surface, earlier, Number(new URL(listener.url).port));
    }
  } catch (error) {
    await drain(0);
    throw error;
  }
  return {
    urls: Object.fromEntries(open.map(({ surface, url }) => [surface, url])),
    drain,
    replaceCertificate(certificate) {
      for (const listener of open) listener.replaceCertificate(certificate);
    },
  };
}

/** A URL for a host and a port. A listener on all addresses is reached at the loopback address. */
function urlOf(host: string, port: number, path = "", protocol = "http"): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${protocol}://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}${path}`;
}

/** An earlier port may be in use, or no longer be allowed. Other errors would occur with any port. */
function ignoreUnusable(error: unknown): undefined {
  if (!(error instanceof CommandFailed)) throw error;
}

/** A surface's address with a definite port. */
type Place = ListenAddress & { readonly port: number };

interface Listener extends Pick<Listeners, "drain" | "replaceCertificate"> {
  readonly surface: string;
  readonly url: string;
}

interface ListenerOptions {
  readonly https: Https | undefined;
  readonly onCertificate: (certificate: Certificate) => void;
  readonly sharing: Sharing | undefined;
}

async function openListener(
  app: App,
  surface: string,
  address: Place,
  { https, onCertificate, sharing }: ListenerOptions,
): Promise<Listener> {
  const target = app.surface(surface).forHosts(hostsOf(address));
  const handler = toNodeHandler(target);
  let isDraining = false;
  const onRequest: RequestListener = (request, response) => {
    if (isDraining) response.shouldKeepAlive = false;
    handler(request, response);
  };
  const { server, port } = await (sharing
    ? listenShared(onRequest, surface, address, { https, onCertificate, sharing })
    : https
      ? listenWithTls(onRequest, surface, address, https, onCertificate)
      : listenAt(createServer(onRequest), surface, address));
  Object.assign(server, { requestTimeout: 0, headersTimeout: HEADERS_MS, keepAliveTimeout: KEEP_ALIVE_MS });
  const { open: held } = attach(server, target);
  const endHeld = () => {
    for (const each of held) each.destroy();
  };

  return {
    surface,
    url: urlOf(address.host, port, BASE_PATHS[surface], https ? "https" : "http"),
    replaceCertificate({ cert, key }) {
      if (server instanceof SecureServer) server.setSecureContext({ cert, key });
    },
    async drain(graceMs, working = Promise.resolve()) {
      isDraining = true;
      let isWorking = true;
      const workEnds = working.catch(() => {}).then(() => setTimeout(() => (isWorking = false), LAST_WORDS_MS));
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const countOthers = (tell: (others: number) => void) =>
        server.getConnections((_error, count) => tell(Math.max(count - held.size, 0)));
      // No state is kept per request for this: idle connections are looked for only while draining.
      const sweep = setInterval(() => {
        if (!isWorking) target.endEventStreams();
        server.closeIdleConnections();
        countOthers((others) => others === 0 && !isWorking && endHeld());
      }, SWEEP_MS);
      let cut = 0;
      let timer = setTimeout(() => {
        // Also ended if work continues to the end: event streams do not count as aborted requests.
        target.endEventStreams();
        timer = setTimeout(() => {
          countOthers((others) => {
            cut = others;
            server.closeAllConnections();
          });
        }, 2 * SWEEP_MS);
      }, graceMs);
      await closed;
      clearTimeout(await workEnds);
      clearInterval(sweep);
      clearTimeout(timer);
      return cut;
    },
  };
}

/** Names that requests may use for a listener, beside loopback names (open points 11). */
function hostsOf({ host, publicUrl }: ListenAddress): readonly string[] {
  return publicUrl === undefined ? [host] : [host, new URL(publicUrl).hostname];
}

interface Bound {
  readonly server: Server;
  readonly port: number;
}

function listenAt(server: Server, surface: string, { host, port }: Place, reusePort = false): Promise<Bound> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException) =>
      reject(new CommandFailed(listenFailure(cause.code, surface, { host, port }), EXIT.unavailable, cause));
    server.once("error", onError);
    server.listen({ host, port, exclusive: true, reusePort }, () => {
      server.off("error", onError);
      const bound = server.address();
      resolve({ server, port: typeof bound === "object" && bound ? bound.port : port });
    });
  });
}

/** After the kill of an instance, its further processes may still listen for a moment. */
const LEAVING_MS = 1_000;

async function tryListenSoon(host: string, port: number): Promise<string | undefined> {
  const until = performance.now() + LEAVING_MS;
  for (;;) {
    const failure = await tryListen(host, port);
    if (failure !== "EADDRINUSE" || performance.now() > until) return failure;
    await sleep(SWEEP_MS);
  }
}

/** Listens at an address that other processes of this user may also listen at. */
async function listenShared(
  onRequest: RequestListener,
  surface: string,
  address: Place,
  { https, onCertificate, sharing }: ListenerOptions & { readonly sharing: Sharing },
): Promise<Bound> {
  const { host, port } = address;
  // The system would also share the address with another instance of this user, which then gets half of the calls.
  const failure = sharing === "first" && port !== 0 ? await tryListenSoon(host, port) : undefined;
  if (failure !== undefined) throw new CommandFailed(listenFailure(failure, surface, address), EXIT.unavailable);
  if (!https) return listenAt(createServer(onRequest), surface, address, true);
  let { certificate } = https;
  if (!certificate) {
    // Only listhen creates certificates, and it cannot share an address.
    const first = await listenWithTls(onRequest, surface, { ...address, port: 0 }, https, onCertificate);
    first.server.close();
    certificate = first.certificate;
  }
  const { cert, key } = certificate;
  return listenAt(createSecureServer({ cert, key }, onRequest), surface, address, true);
}

async function listenWithTls(
  onRequest: RequestListener,
  surface: string,
  address: Place,
  https: Https,
  onCertificate: (certificate: Certificate) => void,
): Promise<HttpsListener> {
  try {
    const listener = await listenHttps(onRequest, address, https);
    onCertificate(listener.certificate);
    return listener;
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause;
    // The error has no code: try to listen once more to get the system's code.
    const code = (await tryListen(address.host, address.port)) ?? (cause as NodeJS.ErrnoException).code;
    throw new CommandFailed(listenFailure(code, surface, address), EXIT.unavailable, cause);
  }
}

function listenFailure(code: string | undefined, surface: string, { host, port }: Place): string {
  const setting = `${surface}.listen`;
  if (code === "EADDRINUSE")
    return `${setting}: port ${port} on ${host} is already in use: stop the program that uses it, or set another port (with 0 the system chooses one)`;
  if (code === "EACCES")
    return `${setting}: this user may not listen on port ${port}: set a port above 1023 (with 0 the system chooses one)`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `${setting}: this machine has no address ${host}`;
  return `${setting}: cannot listen on ${host} port ${port} (${code ?? "unknown reason"})`;
}

interface HttpsListener {
  readonly server: Server;
  readonly port: number;
  /** The given certificate, or the created one. */
  readonly certificate: Certificate;
}

const VALIDITY_DAYS = 365;
/** listhen replaces any other spelling by another host. */
const USABLE_HOST = /^(?!-)[\d.:A-Za-z-]{1,63}(?<!-)$/;

/** Attempts to listen on a port of the system's choice. */
const ATTEMPTS = 5;

/** Listen with TLS. With port 0 the system chooses one. Creates a self-signed certificate first if none exists. Throws for a port in use. */
async function listenHttps(
  handler: RequestListener,
  { host, port }: { readonly host: string; readonly port: number },
  https: Https,
): Promise<HttpsListener> {
  if (!USABLE_HOST.test(host)) throw new CommandFailed(`The host ${host} cannot be used with HTTPS`, EXIT.config);
  // Loaded only here, because loading takes 50 to 125 ms and also loads h3 1.
  const { listen } = await import("listhen");
  const options = {
    hostname: host,
    // By default listhen tries port 3000 or any other port if a port is in use.
    port: {
      ...(port === 0 ? { random: true } : { port, alternativePortRange: [port, port] as [number, number], random: false }),
      // Off, because listhen writes to standard output.
      verbose: false,
    },
    https: https.certificate ?? { domains: [...https.names], validityDays: VALIDITY_DAYS },
    public: host === "0.0.0.0" || host === "::",
    ...{ showURL: false, open: false, clipboard: false, qr: false },
    // Off, because listhen's own handler of SIGTERM aborts requests in flight.
    autoClose: false,
  };
  const { server, https: served } = await again(port === 0 ? ATTEMPTS : 1, () =>
    orListenError(handler, () => listen(handler, options)),
  );
  const bound = server.address();
  if (!served || typeof bound !== "object" || !bound) throw new Error("listhen did not listen with TLS");
  if (port !== 0 && bound.port !== port) {
    server.close();
    throw new CommandFailed(`Port ${port} cannot be used with HTTPS, because browsers refuse it`, EXIT.config);
  }
  return { server: server as Server, port: bound.port, certificate: served };
}

/** listhen looks for a free port first, and listens on it afterwards: meanwhile, another program can take it. */
async function again<T>(attempts: number, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (attempts === 1 || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return again(attempts - 1, attempt);
  }
}

/** Rejects if the server of a handler cannot listen. listhen does not wait for that error, which would end the process. */
async function orListenError<T>(handler: RequestListener, listening: () => Promise<T>): Promise<T> {
  const failed = Promise.withResolvers<never>();
  const listens = channel("tracing:net.server.listen:asyncStart");
  const watch = (message: unknown) => {
    const { server } = message as { readonly server: Server };
    if (!server.listeners("request").includes(handler)) return;
    server.once("error", failed.reject).once("listening", () => server.off("error", failed.reject));
  };
  listens.subscribe(watch);
  try {
    return await Promise.race([listening(), failed.promise]);
  } finally {
    listens.unsubscribe(watch);
  }
}
