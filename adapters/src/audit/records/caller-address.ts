import { BlockList, isIP } from "node:net";
import type { ports } from "@portico/core";

/** Finds the address of a caller. */
export type FindAddress = (who: Pick<ports.AuditActor, "address" | "forwardedFor">) => string | undefined;

/**
 * The address of a connection, or, if it comes from a trusted proxy, the last address in `X-Forwarded-For` that is not one itself:
 * everything before it may be invented. `trustedProxies` are addresses and networks, such as `10.0.0.0/8`. Throws TypeError for
 * any other text.
 */
export function createFindAddress(trustedProxies: readonly string[]): FindAddress {
  const trusted = new BlockList();
  for (const written of trustedProxies) addNetwork(trusted, written);
  const isTrusted = (address: string) => trusted.check(address, familyOf(address));
  return ({ address, forwardedFor }) => {
    let known = address === undefined ? undefined : plainAddress(address);
    const forwarded = (forwardedFor ?? "").split(",").map((each) => plainAddress(each.trim()));
    while (known !== undefined && isTrusted(known)) {
      const before = forwarded.pop();
      // Nothing before an invalid part can be believed either.
      if (before === undefined) break;
      known = before;
    }
    return known;
  };
}

/** Whether a text names an address or a network. */
export function isNetwork(written: string): boolean {
  const [address = "", prefix, ...more] = written.split("/");
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

function addNetwork(list: BlockList, written: string): void {
  if (!isNetwork(written)) throw new TypeError(`"${written}" is not an address or a network such as 10.0.0.0/8`);
  const [address = "", prefix] = written.split("/");
  if (prefix === undefined) list.addAddress(address, familyOf(address));
  else list.addSubnet(address, Number(prefix), familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

/** An IPv4 address in the form of IPv6 as IPv4, and without a port or zone. Undefined for any other text. */
function plainAddress(written: string): string | undefined {
  const [text = ""] = written.replace(/^::ffff:(?=\d+\.)/i, "").split("%", 1);
  if (isIP(text) !== 0) return text;
  const address = /^\[(?<v6>[^\]]+)\](?::\d+)?$/.exec(text)?.groups?.["v6"] ?? /^(?<v4>[\d.]+):\d+$/.exec(text)?.groups?.["v4"];
  return address !== undefined && isIP(address) !== 0 ? address : undefined;
}
