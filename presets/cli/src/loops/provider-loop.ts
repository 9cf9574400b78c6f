import type { ports, Secret } from "@portico/core";
import { SAFE_TOKEN_PREFIX, type SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { keysOf, type ServedProvider } from "@portico/presets/platform/provider-choice";
import type { ListenAddress } from "@portico/presets/settings/listen";
import { leadsTo } from "./leads-to.ts";

/** Why a provider must not be served, and how to fix it, as sentences for a person. */
export interface ProviderLoop {
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
