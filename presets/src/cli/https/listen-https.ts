import type { RequestListener, Server } from "node:http";
import type { ListenAddress } from "../../settings/listen.ts";
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

/** Listen with TLS. Creates a self-signed certificate first if none exists. For a port in use, listhen throws an error. */
export async function listenHttps(handler: RequestListener, { host, port }: ListenAddress, https: Https): Promise<HttpsListener> {
  if (!USABLE_HOST.test(host)) throw new CommandFailed(`The host ${host} cannot be used with HTTPS`, EXIT.config);
  // Loaded only here, because loading takes 50 to 125 ms and also loads h3 1.
  const { listen } = await import("listhen");
  const { server, https: served } = await listen(handler, {
    hostname: host,
    // By default listhen tries port 3000 or any other port if a port is in use.
    port: {
      ...(port === 0 ? { random: true } : { port, alternativePortRange: [port, port], random: false }),
      // Off, because listhen writes to standard output.
      verbose: false,
    },
    https: https.certificate ?? { domains: [...https.names], validityDays: VALIDITY_DAYS },
    public: host === "0.0.0.0" || host === "::",
    ...{ showURL: false, open: false, clipboard: false, qr: false },
    // Off, because listhen's own handler of SIGTERM aborts requests in flight.
    autoClose: false,
  });
  const bound = server.address();
  if (!served || typeof bound !== "object" || !bound) throw new Error("listhen did not listen with TLS");
  if (port !== 0 && bound.port !== port) {
    server.close();
    throw new CommandFailed(`Port ${port} cannot be used with HTTPS, because browsers refuse it`, EXIT.config);
  }
  return { server: server as Server, port: bound.port, certificate: served };
}
