import { ports, Secret } from "@portico/core";
import { CallFailed, createClient } from "@portico/core/client";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import type { SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "./data-directory.ts";
import { isDataDirectoryLocked } from "./data-lock.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { trustOwnCertificate } from "./https/trust-own-certificate.ts";
import { storesElsewhere } from "./instance-stores.ts";
import { instanceToken } from "./workflows/issue-grant.ts";

/** What the commands do with safe tokens. */
export interface TokenActions {
  list: SafeTokens["list"];
  issue(order: Parameters<SafeTokens["issue"]>[0]): Promise<{ readonly token: Secret }>;
  revoke: SafeTokens["revoke"];
  revokeAll: SafeTokens["revokeAll"];
}

/** A service that is silent for this long counts as not reachable. */
const ANSWER_MS = 30_000;

/**
 * The safe tokens of the service that runs, over its HTTP API, if the instance keeps them outside of its data directory. Undefined if it does not, or
 * if no agent service runs.
 */
export async function runningTokens(settings: PlatformSettings): Promise<TokenActions | undefined> {
  if (storesElsewhere(settings, [ports.records, ports.secrets]).length === 0) return undefined;
  const directory = dataDirectory(settings.dataDir);
  const baseURL = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners["agent"]?.url : undefined;
  if (baseURL === undefined) return undefined;
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const headers = { "x-agent-service-token": (await instanceToken(settings)).reveal() };
  const client = createClient(safeTokenContract, { baseURL, headers });
  const asked = async <T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await call(AbortSignal.timeout(ANSWER_MS));
    } catch (error) {
      if (!CallFailed.is(error))
        throw new CommandFailed(`The agent service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
      throw new CommandFailed(`The agent service refused: status ${error.status}`, EXIT.failed, error);
    }
  };
  return {
    async list() {
      const { safeTokens } = await asked((signal) => client.list({ signal }));
      return safeTokens.map((token) => ({ ...token, label: token.label, expiresAt: token.expiresAt }));
    },
    async issue({ providerId, label }) {
      const body = { providerId, ...(label !== undefined && { label }) };
      return { token: new Secret((await asked((signal) => client.issue({ body, signal }))).token) };
    },
    async revoke(tokenId) {
      try {
        return (await client.revoke({ params: { tokenId }, signal: AbortSignal.timeout(ANSWER_MS) })).revoked > 0;
      } catch (error) {
        if (CallFailed.is(error) && error.status === 404) return false;
        return asked(() => Promise.reject(error as Error));
      }
    },
    revokeAll: async () => (await asked((signal) => client.revokeAll({ signal }))).revoked,
  };
}
