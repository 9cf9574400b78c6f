import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { type App, ports, type Secret, withoutEnd } from "@portico/core";
import { createSafeTokens, SAFE_TOKEN_PREFIX, type SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { serviceTokens } from "@portico/presets/platform/own-token";
import { keysOf, type ServedProvider } from "@portico/presets/platform/provider-choice";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** Throws CommandFailed (78) if a provider's key is a token of this instance. */
export async function refuseOwnKeys(app: App, settings: PlatformSettings, providers: readonly ServedProvider[]): Promise<void> {
  // A custom preset may have neither.
  if (!app.has(ports.secrets) || !app.has(ports.records)) return;
  const secrets = app.port(ports.secrets);
  const own = {
    secrets,
    service: await serviceTokens(settings, secrets),
    safe: createSafeTokens({
      records: app.port(ports.records),
      secrets,
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    }),
  };
  await refuse(providers, (provider) => keyLoop(provider, own));
}

/** Throws CommandFailed (78) if a provider's address is the proxy that listens now. */
export async function refuseOwnAddress(
  urls: Readonly<Record<string, string>>,
  address: ListenAddress | undefined,
  providers: readonly ServedProvider[],
): Promise<void> {
  const url = urls["proxy"];
  if (url === undefined) return;
  const { hostname, port } = new URL(url);
  const proxy = { host: hostname, ...address, port: Number(port) };
  await refuse(providers, (provider) => addressLoop(provider, proxy));
}

async function refuse(
  providers: readonly ServedProvider[],
  loopOf: (provider: ServedProvider) => Promise<ProviderLoop | undefined>,
): Promise<void> {
  const lines = await Promise.all(
    providers.map(async (provider) => {
      const loop = await loopOf(provider);
      const found = provider.source ? ` (found: ${provider.source})` : "";
      return loop ? [`Provider "${provider.id}"${found}: ${loop.message}; ${loop.fix}`] : [];
    }),
  );
  if (lines.flat().length > 0) throw new CommandFailed(lines.flat().join("\n"), EXIT.config);
}

/** Why a provider must not be served, and how to fix it, as sentences for a person. */
interface ProviderLoop {
  readonly message: string;
  readonly fix: string;
}

/** The tokens of this instance that exist. */
export interface InstanceTokens {
  readonly secrets: Pick<ports.Secrets, "digest" | "matches">;
  /** The tokens of the agent service and the workflow service. */
  readonly service: readonly Secret[];
  readonly safe: Pick<SafeTokens, "find"> | undefined;
}

/** Detects a provider whose address is this instance's own proxy. `proxy`: where that proxy listens. */
export async function addressLoop({ baseUrl, origin }: ServedProvider, proxy: ListenAddress): Promise<ProviderLoop | undefined> {
  if (baseUrl === undefined || !(await leadsTo(baseUrl, proxy))) return undefined;
  return {
    message: `its address ${baseUrl} is this instance's own proxy, so that every call would come back`,
    fix: origin === "found" ? FOUND_FIX : "set `baseUrl` to the address of the upstream itself",
  };
}

/** Detects a provider whose key is a token of this instance. No upstream accepts it, but the instance's own proxy does. */
export async function keyLoop(provider: ServedProvider, own: InstanceTokens): Promise<ProviderLoop | undefined> {
  const { secrets, service, safe } = own;
  const fix = provider.origin === "found" ? FOUND_FIX : "set `credential` to the key that the upstream gave you";
  for (const key of keysOf(provider)) {
    if (service.some((token) => secrets.matches(key, secrets.digest(token.reveal()))))
      return { message: "its key is a token of this instance's agent service or workflow service", fix };
    if (key.startsWith(SAFE_TOKEN_PREFIX) && (await safe?.find(key)))
      return { message: "its key is a safe token of this instance, which leads back to its own proxy", fix };
  }
  return undefined;
}

const FOUND_FIX =
  "unset the environment variables that point to this proxy (its address and its key), or set `autoProviders` to false";

/**
 * Whether calls to an http or https address reach a listener of this machine: at its `publicUrl`, or at its port on one of the
 * addresses where it accepts connections. Port 0 is not known yet. Host names are resolved only if the port is the same. An unknown host name leads
 * nowhere.
 */
async function leadsTo(address: string, { host, port, publicUrl }: ListenAddress): Promise<boolean> {
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
