import { channel } from "node:diagnostics_channel";
import type { RequestListener, Server } from "node:http";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { Certificate, Https } from "./certificate.ts";

export interface HttpsListener {
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
export async function listenHttps(
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
