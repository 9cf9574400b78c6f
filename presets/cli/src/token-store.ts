import { ports } from "@portico/core";
import { safeTokenContract } from "@portico/plugins/model-proxy/management-contract";
import { createSafeTokens, type SafeToken } from "@portico/plugins/model-proxy/safe-tokens";
import { chooseProviders } from "@portico/presets/platform/provider-choice";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import * as v from "valibot";
import { dataDirectory } from "./data-directory.ts";
import { makeDataDirectory } from "./data-lock.ts";
import { commandActor } from "./command-actor.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { runningTokens, type TokenActions } from "./running-tokens.ts";
import { hasStore, withStores } from "./store-app.ts";

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
  return withTokens(settings, async (tokens) => (await tokens.issue({ ...wanted, by: commandActor() })).token.reveal());
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
