import type { IncomingMessage, ServerResponse } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import { type FaultCode, faults } from "../grammar/error.ts";
import type { Surface } from "./surface.ts";
import type { Refusal } from "./answer.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { callerIdHeader } from "./answer-headers.ts";

/** Why a request is refused for the host that it names. */
export interface HostRefusal {
  readonly code: Extract<FaultCode, "host_not_allowed" | "invalid_request">;
  readonly message?: string;
}

/**
 * Checks every host that a request names. Accepts only names and addresses of this machine (`localhost`, names below it,
 * 127.0.0.0/8, `::1`), and `hosts`: names or addresses without a port. `0.0.0.0` and `::` in `hosts` accept every IP address: a
 * DNS rebinding page needs a name that it can point elsewhere, so it never uses an address. Ports are not compared.
 *
 * A request that names no host is accepted: only HTTP/1.0 allows it, and browsers always name one.
 */
export function hostRule(hosts: readonly string[]): (named: readonly string[]) => HostRefusal | undefined {
  const names = new Set(hosts.map((host) => nameOf(isIPv6(host) ? `[${host}]` : host)));
  const isEveryAddress = names.has("0.0.0.0") || names.has("[::]");
  // Most callers of one listener spell the host in the same way.
  let lastAccepted: string | undefined;
  return (named) => {
    if (named.length === 1 && named[0] === lastAccepted) return undefined;
    if (named.length > 1) return SEVERAL;
    for (const host of named) {
      const name = nameOf(host);
      if (name === undefined) return MALFORMED;
      if (!names.has(name) && !isLoopback(name) && !(isEveryAddress && isAddress(name))) return NOT_ALLOWED;
      lastAccepted = host;
    }
    return undefined;
  };
}

/**
 * Every `Host` of a Node request. Node itself shows only the first. A request target with its own host replaces them (RFC 9112,
 * 3.2.2).
 */
export function hostsOf({ rawHeaders, url = "/" }: Pick<IncomingMessage, "rawHeaders" | "url">): readonly string[] {
  const named: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === "host") named.push(...rawHeaders[at + 1]!.split(","));
  }
  if (url.startsWith("/") || url === "*" || named.length > 1) return named;
  return [URL.parse(url)?.host ?? ""];
}

const SEVERAL: HostRefusal = { code: "invalid_request", message: "A request names one host" };
const MALFORMED: HostRefusal = { code: "invalid_request", message: "The Host header is not a host" };
const NOT_ALLOWED: HostRefusal = { code: "host_not_allowed" };

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8);
LOOPBACK.addAddress("::1", "ipv6");

/** The canonical name of `name:port`: lowercase, IPv6 in brackets. Undefined for an invalid host. */
function nameOf(host: string): string | undefined {
  if (!/^[^\s/?#@\\]+$/.test(host)) return undefined;
  return URL.parse(`http://${host}`)?.hostname.replace(/\.$/, "");
}

function isLoopback(name: string): boolean {
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return isAddress(name) && (name.startsWith("[") ? LOOPBACK.check(name.slice(1, -1), "ipv6") : LOOPBACK.check(name));
}

function isAddress(name: string): boolean {
  return name.startsWith("[") || isIP(name) === 4;
}

/** The entry points of a surface. They can be told to refuse a request. */
export interface EntryPoints {
  fetch(request: Request, refusal?: Refusal): Promise<Response>;
  node(request: IncomingMessage, response: ServerResponse, refusal?: Refusal): void | Promise<void>;
}

/** `surface` for requests that name one of `hosts`, or this machine. Other requests are refused with the surface's own errors. */
export function hostBound(surface: Surface, hosts: readonly string[], entries: EntryPoints): Surface {
  const refusalOf = hostRule(hosts);
  return {
    ...surface,
    forHosts: (others) => surface.forHosts(others),
    fetch: (request) => entries.fetch(request, refusalOfRequest(request, refusalOf)),
    node: (request, response) => entries.node(request, response, refusalOf(hostsOf(request))),
    upgrade(request, socket, head) {
      const refusal = refusalOf(hostsOf(request));
      if (!refusal) return surface.upgrade(request, socket, head);
      const { status, message } = faults[refusal.code];
      refuseUpgrade(socket, status, { error: refusal.code, message: refusal.message ?? message }, callerIdHeader(request));
      return true;
    },
  };
}

/**
 * The `Host` header and the host of the URL. A fetch host does not tell which of them the caller named, so both must be allowed.
 */
function refusalOfRequest(request: Request, refusalOf: ReturnType<typeof hostRule>): HostRefusal | undefined {
  const { host } = new URL(request.url);
  // Several `Host` headers arrive joined by a comma.
  const named = request.headers.get("host")?.split(",") ?? [host];
  return refusalOf(named) ?? (named[0] === host ? undefined : refusalOf([host]));
}
