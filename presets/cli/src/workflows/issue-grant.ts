import { existsSync } from "node:fs";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { createApp, ports, type Secret } from "@portico/core";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import { findOwnToken, type TokenOf } from "@portico/presets/platform/own-token";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "../data-directory.ts";
import { commandActor } from "../command-actor.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { storesElsewhere } from "../instance-stores.ts";
import { hasStore, withStores } from "../store-app.ts";

export interface GrantWish {
  readonly workflowId: string;
  /** Default: the instance's owner, as with the agent service. */
  readonly userId?: string | undefined;
  readonly bindingId?: string | undefined;
  /** A grant to test and write the definition, instead of one that starts a run. */
  readonly edits?: true | undefined;
  /** Default: ten minutes. */
  readonly ttlMs?: number | undefined;
}

export interface IssuedGrant {
  readonly executionGrantId: string;
  readonly workflowId: string;
  readonly expiresAt: string;
}

/** Sign a grant with the instance's key. Works with and without a running service. Throws CommandFailed (69) if no key exists yet. */
export async function issueGrant(settings: PlatformSettings, wish: GrantWish): Promise<IssuedGrant> {
  const owner = settings.agent.tokens.find(({ role }) => role === "owner");
  const key = await instanceToken(settings);
  const { workflowId, userId = owner?.userId ?? "owner", bindingId, edits, ttlMs } = wish;
  const app = await createApp({ name: "grant", adapters: [hmacSigning({ key })] });
  try {
    const grants = createGrants({
      signing: app.port(ports.signing),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
    const { executionGrantId, grant } = await grants.issue({ workflowId, userId, bindingId, edits, ttlMs });
    // Where no store is, such as on another machine with the owner's token, there is no audit either.
    if (hasStore(settings)) {
      const action = edits ? "editing-grant.issue" : "execution-grant.issue";
      const fact = { action, object: grant.grantId, who: commandActor() };
      await withStores(settings, { needed: [ports.records] }, (store) => store.port(ports.audit).record(fact));
    }
    return { executionGrantId, workflowId, expiresAt: new Date(grant.expiresAt).toISOString() };
  } finally {
    await app.close();
  }
}

/** The instance access token. Throws CommandFailed (69) if it does not exist yet. */
export async function instanceToken(settings: PlatformSettings): Promise<Secret> {
  const token = settings.agent.tokens.find(({ role }) => role === "owner")?.token ?? (await keptToken(settings, "agent"));
  if (!token) throw neverStarted(settings);
  return token;
}

/** The workflow service's token. Throws CommandFailed (69) if it does not exist yet. */
export async function workflowToken(settings: PlatformSettings): Promise<Secret> {
  const token = settings.workflow.token ?? (await keptToken(settings, "workflow"));
  if (!token) throw neverStarted(settings);
  return token;
}

async function keptToken(settings: PlatformSettings, of: TokenOf): Promise<Secret | undefined> {
  if (storesElsewhere(settings, [ports.secrets]).length > 0)
    return withStores(settings, { needed: [ports.secrets] }, (app) => findOwnToken(app.port(ports.secrets), of));
  const { path: dir, credentials } = dataDirectory(settings.dataDir);
  if (!existsSync(credentials)) return undefined;
  const app = await createApp({ name: "credentials", adapters: sqliteStore({ dir, ports: [ports.secrets] }) });
  try {
    return await findOwnToken(app.port(ports.secrets), of);
  } catch (error) {
    if (error instanceof ports.SecretsUnavailable) throw new CommandFailed(error.message, EXIT.unavailable, error);
    throw error;
  } finally {
    await app.close();
  }
}

/** This command creates no token, because it would never be shown. A start of the service creates tokens. */
function neverStarted({ dataDir }: PlatformSettings): CommandFailed {
  const { path } = dataDirectory(dataDir);
  return new CommandFailed(
    `The data directory ${path} has no tokens yet: start the service with it once, or set the tokens in the configuration`,
    EXIT.unavailable,
  );
}
