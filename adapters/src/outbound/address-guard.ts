import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { isPublicAddress } from "./is-public-address.ts";

/** Thrown if a name resolves to no allowed address. */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

/** The allowed addresses: every public address, and those that the instance allows additionally. */
export interface AddressGuard {
  /** Whether a host is refused for its name or address alone. Other hosts may still be refused after resolution. */
  refuses(host: string, port: number): boolean;
  /**
   * Resolves names for a connection to this port, only to allowed addresses. The connection uses exactly the checked addresses,
   * even if the name resolves differently a moment later.
   */
  lookup(port: number): LookupFunction;
  /**
   * Checks a name that another machine will resolve: rejects with AddressRefused if this machine resolves it to no allowed address. A name that
   * this machine does not know passes.
   */
  checkName(host: string, port: number): Promise<void>;
}

interface Allowed {
  readonly host?: string;
  readonly network?: BlockList;
  readonly port?: number | undefined;
}

/** `allow` has the form of the option of `httpNode`. Throws TypeError for an invalid entry. */
export function createAddressGuard(allow: readonly string[], resolve: LookupFunction = systemLookup): AddressGuard {
  const entries = allow.map(readAllowed);
  const allows = (host: string, port: number, address: string | undefined): boolean =>
    entries.some((entry) => {
      if (entry.port !== undefined && entry.port !== port) return false;
      return entry.host === host || (address !== undefined && entry.network?.check(address, familyOf(address)) === true);
    });
  const isReachable = (host: string, port: number, address: string): boolean =>
    isPublicAddress(address) || allows(host, port, address);

  const lookup: AddressGuard["lookup"] = (port) => (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "");
      const reachable = (found as LookupAddress[]).filter(({ address }) => isReachable(canonical(hostname), port, address));
      const first = reachable[0];
      if (!first) return callback(new AddressRefused("The name leads to no address that may be reached"), "");
      if (options.all) callback(null, reachable);
      else callback(null, first.address, first.family);
    });
  };

  return {
    lookup,
    checkName: (host, port) =>
      new Promise((resolved, reject) => {
        const name = canonical(host);
        // Addresses have been checked without resolution.
        if (isIP(name)) return resolved();
        lookup(port)(name, { all: true }, (error) => (error instanceof AddressRefused ? reject(error) : resolved()));
      }),
    refuses(host, port) {
      const name = canonical(host);
      if (isIP(name)) return !isReachable(name, port, name);
      return isLoopbackName(name) && !allows(name, port, "127.0.0.1") && !allows(name, port, "::1");
    },
  };
}

/** Host, host:port, address, [address]:port, or network/bits. */
function readAllowed(entry: string): Allowed {
  const network = /^\[?([\da-f.:]+)\]?\/(\d{1,3})$/i.exec(entry);
  if (network) return { network: networkOf(entry, network[1]!, Number(network[2])) };
  if (isIP(entry)) return { network: networkOf(entry, entry, undefined) };
  const [, host, portText] = /^(\[[\da-f.:]+\]|[\w.-]+)(?::(\d{1,5}))?$/i.exec(entry) ?? [];
  const port = portText === undefined ? undefined : Number(portText);
  const name = host && URL.parse(`http://${host}`) ? canonical(host) : undefined;
  if (!name || (port !== undefined && (port < 1 || port > 65_535))) throw invalid(entry);
  return isIP(name) ? { network: networkOf(entry, name, undefined), port } : { host: name, port };
}

function networkOf(entry: string, address: string, bits: number | undefined): BlockList {
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (!family || (bits !== undefined && bits > most)) throw invalid(entry);
  const network = new BlockList();
  network.addSubnet(address, bits ?? most, familyOf(address));
  return network;
}

function invalid(entry: string): TypeError {
  return new TypeError(`"${entry}" is not a valid host, host:port, address or network (such as 10.0.0.0/8)`);
}

/** As in a URL, without brackets and without the final dot of a full name. */
function canonical(host: string): string {
  return host
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 4 ? "ipv4" : "ipv6";
}

function isLoopbackName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}
