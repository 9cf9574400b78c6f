import { existsSync } from "node:fs";
import { type App, createApp, ports } from "@portico/core";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import { createSafeTokens, type SafeToken, type SafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import * as v from "valibot";
import { type DataDirectory, dataDirectory } from "../platform/data-directory.ts";
import { chooseProviders } from "../platform/provider-choice.ts";
import { storageAdapters } from "../platform/storage-adapters.ts";
import { makeDataDirectory } from "./data-lock.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";

/** Issue a safe token; answers its value. Throws CommandFailed (64) for a provider that is not served, or a label that is too long. */
export async function issueToken(
  flags: SettingsFlags,
  wanted: { readonly providerId: string; readonly label?: string | undefined },
): Promise<string> {
  const { settings } = await readSettings(flags);
  // The same rules as over the agent service.
  if (!v.is(safeTokenContract.issue.body, wanted))
    throw new CommandFailed("The provider's id is empty, or the label too long", EXIT.usage);
  const providers = await chooseProviders(settings, { env: process.env });
  if (!providers.some(({ id }) => id === wanted.providerId)) {
    const known = providers.map(({ id }) => id).join(", ") || "none";
    throw new CommandFailed(`No enabled provider has the id "${wanted.providerId}"; there is: ${known}`, EXIT.usage);
  }
  const directory = dataDirectory(settings.dataDir);
  makeDataDirectory(directory);
  return withTokens(directory, async (tokens) => (await tokens.issue(wanted)).token.reveal());
}

/** All safe tokens, oldest first. Makes no data directory where there is none. */
export async function listTokens(flags: SettingsFlags): Promise<readonly SafeToken[]> {
  const directory = dataDirectory((await readSettings(flags)).settings.dataDir);
  return existsSync(directory.records) ? withTokens(directory, (tokens) => tokens.list()) : [];
}

/** Revoke one or all; answers how many. Throws CommandFailed: 64 unless exactly one of both is asked for, 1 for an id that nobody has. */
export async function revokeTokens(
  flags: SettingsFlags,
  wanted: { readonly tokenId?: string | undefined; readonly all: boolean },
): Promise<number> {
  const { tokenId, all } = wanted;
  if (all === (tokenId !== undefined))
    throw new CommandFailed("Give either a token's id or --all (see portico token revoke --help)", EXIT.usage);
  const directory = dataDirectory((await readSettings(flags)).settings.dataDir);
  const isThere = existsSync(directory.records);
  if (tokenId === undefined) return isThere ? withTokens(directory, (tokens) => tokens.revokeAll()) : 0;
  const isRevoked = isThere && (await withTokens(directory, (tokens) => tokens.revoke(tokenId)));
  if (!isRevoked) throw new CommandFailed("No safe token has this id", EXIT.failed);
  return 1;
}

/** The store itself, beside a running service or without one: both see each other's writes at once. */
async function withTokens<T>(directory: DataDirectory, use: (tokens: SafeTokens) => Promise<T>): Promise<T> {
  let app: App | undefined;
  try {
    app = await createApp({ name: "token", adapters: storageAdapters(directory.path) });
    const tokens = createSafeTokens({
      records: app.port(ports.records),
      secrets: app.port(ports.secrets),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
    return await use(tokens);
  } catch (error) {
    if (error instanceof ports.RecordsUnavailable) throw new CommandFailed(error.message, EXIT.unavailable, error);
    throw error;
  } finally {
    await app?.close();
  }
}
