import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Secret } from "@portico/core";

/** How to connect to a server with TLS. All values are PEM texts, not paths. */
export interface TlsOptions {
  /** Certificates of the authorities that may have signed the server's certificate. Default: those that Node.js trusts. */
  readonly ca?: string | Secret | undefined;
  /** This client's own certificate, for a server that asks for one. Requires `key`. */
  readonly cert?: string | Secret | undefined;
  /** The private key of `cert`, without a passphrase. */
  readonly key?: string | Secret | undefined;
}

/**
 * The parsed certificates and key, for all connections to a server. Adapters pass it to drivers instead of the texts, so that no
 * error of a driver contains the key. Throws TypeError for invalid texts; `server` names the server in its message.
 */
export function createTlsContext(server: string, { ca, cert, key }: TlsOptions): SecureContext {
  if ((cert === undefined) !== (key === undefined)) throw new TypeError(`TLS to ${server} needs both cert and key, or neither`);
  try {
    const authorities = reveal(ca);
    // Without this check, Node.js accepts any text, and trusts no server then.
    if (authorities !== undefined) void new X509Certificate(authorities);
    return createSecureContext({ ca: authorities, cert: reveal(cert), key: reveal(key) });
  } catch {
    // Without its cause, which may quote the texts.
    throw new TypeError(`TLS to ${server} needs PEM texts: certificates in ca and cert, and in key the private key of cert`);
  }
}

function reveal(text: string | Secret | undefined): string | undefined {
  return typeof text === "object" ? text.reveal() : text;
}
