import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { withoutEnd } from "@portico/core";
import type { ListenAddress } from "@portico/presets/settings/listen";

/**
 * Whether calls to an http or https address reach a listener of this machine: at its `publicUrl`, or at its port on one of the
 * addresses where it accepts connections. Port 0 is not known yet. Host names are resolved only if the port is the same. An unknown host name leads
 * nowhere.
 */
export async function leadsTo(address: string, { host, port, publicUrl }: ListenAddress): Promise<boolean> {
  const url = new URL(address);
  if (publicUrl !== undefined && isUnder(url, new URL(publicUrl))) return true;
  if (port === 0 || portOf(url) !== port) return false;
  const [own, called] = await Promise.all([acceptedBy(host), addressesOf(url.hostname.replace(/^\[(.*)\]$/, "$1"))]);
  return called.some((each) => own.check(each, isIPv6(each) ? "ipv6" : "ipv4"));
}

function isUnder(url: URL, base: URL): boolean {
  const path = withoutEnd(base.pathname, "/");
  return url.host === base.host && (url.pathname === path || url.pathname.startsWith(`${path}/`));
}

function portOf({ port, protocol }: URL): number {
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}

/** The addresses at which a listener on this host is reached. */
async function acceptedBy(host: string): Promise<BlockList> {
  const accepted = new BlockList();
  const isEvery = host === "0.0.0.0" || host === "::";
  const addresses = isEvery ? ownAddresses() : await addressesOf(host);
  for (const address of addresses) accepted.addAddress(address, isIPv6(address) ? "ipv6" : "ipv4");
  if (isEvery) accepted.addSubnet("127.0.0.0", 8);
  // A connection to the wildcard address goes to this machine itself.
  if (isEvery || addresses.includes("127.0.0.1")) accepted.addAddress("0.0.0.0");
  if (isEvery || addresses.includes("::1")) accepted.addAddress("::", "ipv6");
  return accepted;
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address));
}

async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host)) return [host];
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch {
    return [];
  }
}
