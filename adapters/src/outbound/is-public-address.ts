import { BlockList, isIP } from "node:net";

/** Addresses that belong to no public machine, by the registries of special addresses (RFC 6890 and its successors). */
const SPECIAL_IPV4: readonly (readonly [network: string, bits: number])[] = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local, and with it the clouds' metadata
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, and broadcast
];

/** Inside 2000::/3. */
const SPECIAL_IPV6: readonly (readonly [network: string, bits: number])[] = [
  ["2001::", 23], // protocol assignments: Teredo, benchmarks, ORCHID
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4, which can name any IPv4 address
  ["3fff::", 20], // documentation
];

/** IPv6 networks whose addresses contain an IPv4 address in the last four bytes: mapped addresses, and those of NAT64. */
const IPV4_CARRIERS = ["::ffff:", "64:ff9b::"] as const;

const special = new BlockList();
const ordinary = new BlockList();
ordinary.addSubnet("2000::", 3, "ipv6");
for (const [network, bits] of SPECIAL_IPV6) special.addSubnet(network, bits, "ipv6");
for (const [network, bits] of SPECIAL_IPV4) special.addSubnet(network, bits, "ipv4");
for (const carrier of IPV4_CARRIERS) {
  ordinary.addSubnet(`${carrier}0.0.0.0`, 96, "ipv6");
  for (const [network, bits] of SPECIAL_IPV4) special.addSubnet(carrier + network, 96 + bits, "ipv6");
}

/** Whether an address belongs to the public internet. False for an invalid address, or one with a zone. */
export function isPublicAddress(address: string): boolean {
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 4) return !special.check(address, "ipv4");
  return family === 6 && ordinary.check(address, "ipv6") && !special.check(address, "ipv6");
}
