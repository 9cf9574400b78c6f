import { existsSync } from "node:fs";
import { ports, Secret } from "@portico/core";
import { CallFailed, createClient } from "@portico/core/client";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import { createSafeTokens, type ListedToken, type SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { replaceOwnToken, type TokenOf } from "@portico/presets/platform/own-token";
import { AGENTS_PROVIDER } from "@portico/plugins/conversations-runs/config";
import { chooseProviders } from "@portico/presets/platform/provider-choice";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import * as v from "valibot";
import { commandActor } from "./command-actor.ts";
import { dataDirectory } from "./data-directory.ts";
import { isDataDirectoryLocked, makeDataDirectory } from "./data-lock.ts";
import { readEndpoints } from "./endpoints-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { trustOwnCertificate } from "./certificate.ts";
import { storesElsewhere } from "./instance-stores.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { hasStore, withStores } from "./store-app.ts";
import { instanceToken } from "./workflows/issue-grant.ts";

/** Issue a safe token. Returns its value. Throws CommandFailed (64) for a provider that is not served, or a label that is too long. */
export async function issueToken(
  flags: SettingsFlags,
  wanted: { readonly providerId: string; readonly label?: string | undefined },
): Promise<string> {
  const { settings } = await readSettings(flags);
  // The same rules as in the agent service.
  if (!v.is(safeTokenContract.issue.body, wanted))
    throw new CommandFailed("The provider's id is empty, or the label is too long", EXIT.usage);
  const providers = await chooseProviders(settings, { env: process.env });
  const agents = settings.agent.asModels.userId === undefined ? [] : [AGENTS_PROVIDER];
  const ids = [...providers.map(({ id }) => id), ...agents];
  if (!ids.includes(wanted.providerId)) {
    const known = ids.join(", ") || "none";
    throw new CommandFailed(`No enabled provider has the id "${wanted.providerId}". Enabled providers: ${known}`, EXIT.usage);
  }
  if (!namesCluster(settings)) makeDataDirectory(dataDirectory(settings.dataDir));
  return withTokens(settings, async (tokens) => (await tokens.issue({ ...wanted, by: commandActor() })).token.reveal());
}

/** All safe tokens, oldest first. Does not create a missing data directory. */
export async function listTokens(flags: SettingsFlags): Promise<readonly ListedToken[]> {
  const { settings } = await readSettings(flags);
  return hasStore(settings) ? withTokens(settings, (tokens) => tokens.list()) : [];
}

/** Revoke one token or all. Returns the number of revoked tokens. Throws CommandFailed: 64 unless either an id or `--all` is given, 1 for an unknown id. */
export async function revokeTokens(
  flags: SettingsFlags,
  wanted: { readonly tokenId?: string | undefined; readonly all: boolean },
): Promise<number> {
  const { tokenId, all } = wanted;
  if (all === (tokenId !== undefined))
    throw new CommandFailed("Give either a token's id or --all (see portico token revoke --help)", EXIT.usage);
  const { settings } = await readSettings(flags);
  const isThere = hasStore(settings);
  if (tokenId === undefined) return isThere ? withTokens(settings, (tokens) => tokens.revokeAll(commandActor())) : 0;
  const isRevoked = isThere && (await withTokens(settings, (tokens) => tokens.revoke(tokenId, commandActor())));
  if (!isRevoked) throw new CommandFailed("No safe token has this id", EXIT.failed);
  return 1;
}

/** Through the running service, if the instance keeps safe tokens in stores that a command cannot share with it. */
async function withTokens<T>(settings: PlatformSettings, use: (tokens: TokenActions) => Promise<T>): Promise<T> {
  const running = await runningTokens(settings);
  if (running) return use(running);
  return withStores(settings, { needed: [ports.records, ports.secrets] }, (app) =>
    use(
      createSafeTokens({
        records: app.port(ports.records),
        secrets: app.port(ports.secrets),
        clock: app.port(ports.clock),
        ids: app.port(ports.ids),
        audit: app.port(ports.audit),
      }),
    ),
  );
}

/** What the commands do with safe tokens. */
interface TokenActions {
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
async function runningTokens(settings: PlatformSettings): Promise<TokenActions | undefined> {
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
      return safeTokens.map((token) => ({
        ...token,
        label: token.label,
        expiresAt: token.expiresAt,
        lastUsedAt: token.lastUsedAt,
      }));
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

/**
 * Replaces the token that an instance created for one of its services. Returns the new one. A running service reads it by itself. Throws
 * CommandFailed: 64 for another service, or if a setting gives the token; 1 if the instance has created none yet.
 */
export async function rotateOwnToken(flags: SettingsFlags, service: string): Promise<string> {
  if (service !== "agent" && service !== "workflow")
    throw new CommandFailed(`There is no service "${service}" with a token: agent, workflow`, EXIT.usage);
  const { settings } = await readSettings(flags);
  const setting = givenBy(settings, service);
  if (setting !== undefined)
    throw new CommandFailed(
      `The setting ${setting} gives this token: change it there, and send SIGHUP to the service`,
      EXIT.usage,
    );
  const directory = dataDirectory(settings.dataDir);
  if (storesElsewhere(settings, [ports.secrets]).length === 0 && !existsSync(directory.credentials))
    throw new CommandFailed("The instance has created no token yet: its first start does", EXIT.failed);
  return withStores(settings, { needed: [ports.records, ports.secrets] }, async (app) => {
    const fact = { action: "instance-token.rotate", object: service, who: commandActor() };
    const token = await app.port(ports.audit).attempt(fact, () => replaceOwnToken(app.port(ports.secrets), service));
    return token.reveal();
  });
}

/** The setting that gives the token of a service. In a cluster, settings give all tokens. */
function givenBy(settings: Awaited<ReturnType<typeof readSettings>>["settings"], service: TokenOf): string | undefined {
  if (service === "workflow") return settings.workflow.token || namesCluster(settings) ? "workflow.token" : undefined;
  return settings.agent.tokens.some(({ role }) => role === "owner") || namesCluster(settings) ? "agent.tokens" : undefined;
}
