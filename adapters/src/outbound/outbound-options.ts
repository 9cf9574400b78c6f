import { X509Certificate } from "node:crypto";
import { fromEnv, type Secret, secret } from "@portico/core";
import * as v from "valibot";

const MOST_HOSTS = 1000;

/** How an instance reaches the servers that it calls: model providers, MCP servers, those of `http` nodes, and the receiver of notifications. */
export const outboundSettings = {
  outbound: v.optional(
    v.strictObject({
      proxy: v.optional(
        fromEnv(
          "PORTICO_OUTBOUND_PROXY",
          v.pipe(
            secret(),
            v.check((proxy) => isProxy(proxy.reveal()), "an address that begins with http:// or https://, with no path"),
          ),
          "HTTP proxy for the calls of model providers, MCP servers, `http` nodes and notifications, such as `http://user:password@proxy.example:3128`. Loopback addresses are called directly.",
        ),
      ),
      noProxy: v.optional(
        fromEnv(
          "PORTICO_OUTBOUND_NO_PROXY",
          v.pipe(
            v.array(v.pipe(v.string(), v.regex(/^[^\s,]{1,255}$/, "a host, without spaces and commas"))),
            v.maxLength(MOST_HOSTS),
          ),
          "Hosts that are called without the proxy: `host`, `host:port`, `.domain` with its subdomains, `*` for all.",
        ),
        [],
      ),
      ca: v.optional(
        fromEnv(
          "PORTICO_OUTBOUND_CA",
          v.pipe(
            secret(),
            v.check((pem) => isPem(pem.reveal()), "certificates as PEM"),
          ),
          "Certificate authorities that are trusted in addition to those of Node.js, as PEM.",
        ),
      ),
    }),
    {},
  ),
};

/** The setting `outbound`, as an option of adapters that call servers. Default of all: direct calls, and the authorities of Node.js. */
export interface OutboundOptions {
  /** Address of an HTTP proxy, perhaps with a user and a password. */
  readonly proxy?: Secret | undefined;
  /** Hosts that are called without the proxy, in the form of the setting. */
  readonly noProxy?: readonly string[] | undefined;
  /** Authorities that are trusted in addition to those of Node.js, as PEM. */
  readonly ca?: Secret | undefined;
}

function isProxy(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && !url.search && !url.hash;
}

/** Node.js ignores what it cannot read among authorities. */
function isPem(text: string): boolean {
  const begin = "-----BEGIN CERTIFICATE-----";
  const [, ...blocks] = text.split(begin);
  try {
    return blocks.length > 0 && blocks.every((block) => new X509Certificate(begin + block).raw.length > 0);
  } catch {
    return false;
  }
}
