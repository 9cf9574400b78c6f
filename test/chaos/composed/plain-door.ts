import { connect } from "node:tls";
import type { Nginx } from "../../harness/nginx.ts";
import { openRelay, type Relay } from "../../harness/relay.ts";

/** A port of this machine that leads to a server of nginx over TLS, for clients that do not trust its certificate. */
export function openPlainDoor({ port, certificate }: Nginx, servername: string): Promise<Relay> {
  return openRelay(() => connect({ port, host: "127.0.0.1", servername, ca: certificate }));
}
