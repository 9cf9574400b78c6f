import { existsSync } from "node:fs";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { type Adapter, type App, createApp, findStoreMismatch, findStoreTooNew, ports } from "@portico/core";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import { createSafeTokens, type SafeToken, type SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import * as v from "valibot";
import { clusterProblems } from "../platform/cluster-problems.ts";
import { namesCluster } from "../platform/names-cluster.ts";
import { chooseProviders } from "../platform/provider-choice.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { dataDirectory } from "./data-directory.ts";
import { makeDataDirectory } from "./data-lock.ts";
import { checkDirectoryFormat, NEWER_STORE_HELP } from "./directory-format.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";

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
  if (!providers.some(({ id }) => id === wanted.providerId)) {
    const known = providers.map(({ id }) => id).join(", ") || "none";
    throw new CommandFailed(`No enabled provider has the id "${wanted.providerId}". Enabled providers: ${known}`, EXIT.usage);
  }
  if (!namesCluster(settings)) makeDataDirectory(dataDirectory(settings.dataDir));
  return withTokens(settings, async (tokens) => (await tokens.issue(wanted)).token.reveal());
}

/** All safe tokens, oldest first. Does not create a missing data directory. */
export async function listTokens(flags: SettingsFlags): Promise<readonly SafeToken[]> {
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
  if (tokenId === undefined) return isThere ? withTokens(settings, (tokens) => tokens.revokeAll()) : 0;
  const isRevoked = isThere && (await withTokens(settings, (tokens) => tokens.revoke(tokenId)));
  if (!isRevoked) throw new CommandFailed("No safe token has this id", EXIT.failed);
  return 1;
}

function hasStore(settings: PlatformSettings): boolean {
  return namesCluster(settings) || existsSync(dataDirectory(settings.dataDir).records);
}

/** The store of the tokens: in the data directory, or in the database of a cluster. Throws CommandFailed (78). */
async function storeOf(settings: PlatformSettings): Promise<readonly Adapter[]> {
  const needed = [ports.records, ports.secrets];
  if (!namesCluster(settings)) {
    const directory = dataDirectory(settings.dataDir);
    checkDirectoryFormat(directory);
    return sqliteStore({ dir: directory.path, ports: needed });
  }
  const problems = clusterProblems(settings);
  if (problems.length > 0) throw new CommandFailed(problems.join("\n"), EXIT.config);
  // Only here, because other commands need no drivers of servers.
  return (await import("../platform/cluster-store.ts")).clusterStore(settings, needed);
}

/** Opens the store itself. Works with and without a running service: both see each other's writes immediately. */
async function withTokens<T>(settings: PlatformSettings, use: (tokens: SafeTokens) => Promise<T>): Promise<T> {
  const adapters = await storeOf(settings);
  let app: App | undefined;
  try {
    app = await createApp({ name: "token", adapters });
    const tokens = createSafeTokens({
      records: app.port(ports.records),
      secrets: app.port(ports.secrets),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
    return await use(tokens);
  } catch (error) {
    const tooNew = findStoreTooNew(error);
    if (tooNew) throw new CommandFailed(`${tooNew.message}. ${NEWER_STORE_HELP}`, EXIT.config, error);
    const mismatch = findStoreMismatch(error);
    if (mismatch) throw new CommandFailed(mismatch.message, EXIT.config, error);
    if (error instanceof ports.RecordsUnavailable || error instanceof ports.SecretsUnavailable)
      throw new CommandFailed(error.message, EXIT.unavailable, error);
    throw error;
  } finally {
    await app?.close();
  }
}
