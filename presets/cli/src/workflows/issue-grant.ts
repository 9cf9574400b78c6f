import { existsSync } from "node:fs";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { createApp, parseDuration, ports, type Secret } from "@portico/core";
import { createGrants, GRANT_MS } from "@portico/plugins/workflow-service/grants";
import { findOwnToken, type TokenOf } from "@portico/presets/platform/own-token";
import { definitionsInWords } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { commandActor } from "../command-actor.ts";
import { dataDirectory } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { storesElsewhere } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { hasStore, withStores } from "../store-app.ts";
import { readDefinitions } from "./read-definitions.ts";

interface GrantWish {
  readonly workflowId: string;
  /** Default: the instance's owner, as with the agent service. */
  readonly userId?: string | undefined;
  readonly bindingId?: string | undefined;
  /** A grant to test and write the definition, instead of one that starts a run. */
  readonly edits?: true | undefined;
  /** Default: ten minutes. */
  readonly ttlMs?: number | undefined;
}

interface IssuedGrant {
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

/**
 * Issue the grant that a command line asks for. Warns about a workflow that is not deployed: it may be deployed before the grant is
 * used. Throws CommandFailed: 64 for an unknown binding or an invalid lifetime, 69 if no signing key exists.
 */
export async function orderGrant(
  flags: SettingsFlags,
  wanted: {
    readonly workflowId: string;
    readonly userId?: string | undefined;
    readonly bindingId?: string | undefined;
    readonly edits?: boolean | undefined;
    readonly ttl?: string | undefined;
  },
): Promise<{ readonly grant: IssuedGrant; readonly warning?: string }> {
  const { settings } = await readSettings(flags);
  const { workflowId, userId, bindingId } = wanted;
  const edits = wanted.edits ? true : undefined;
  checkBinding(settings, workflowId, bindingId);
  const grant = await issueGrant(settings, { workflowId, userId, bindingId, edits, ttlMs: readTtl(wanted.ttl) });
  // The workflow may be a new one.
  if (edits) return { grant };
  const place = definitionsInWords(settings);
  const deployed = await deployedIds(settings);
  if (deployed === undefined) return { grant, warning: `The definitions in ${place} cannot be read.` };
  if (deployed.includes(workflowId)) return { grant };
  return {
    grant,
    warning: `No usable definition in ${place} has the id "${workflowId}". The grant becomes usable when such a definition is deployed.`,
  };
}

/** Undefined if they cannot be read. */
async function deployedIds(settings: PlatformSettings): Promise<readonly string[] | undefined> {
  try {
    return (await readDefinitions(settings)).deployed;
  } catch (error) {
    if (error instanceof ports.DocumentsUnavailable) return undefined;
    throw error;
  }
}

/** A service with these settings would never accept such a grant. */
function checkBinding({ workflow }: PlatformSettings, workflowId: string, bindingId: string | undefined): void {
  if (bindingId === undefined || workflow.bindings.some((each) => each.id === bindingId && each.workflowId === workflowId))
    return;
  const known = workflow.bindings.filter((each) => each.workflowId === workflowId).map(({ id }) => id);
  throw new CommandFailed(
    `The workflow "${workflowId}" has no binding "${bindingId}" in the configuration; it has: ${known.join(", ") || "none"}`,
    EXIT.usage,
  );
}

function readTtl(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ttlMs = parseDuration(text);
  if (ttlMs !== undefined && ttlMs >= GRANT_MS.least && ttlMs <= GRANT_MS.most) return ttlMs;
  throw new CommandFailed("Option --ttl must be a duration from one second to 366 days, such as 90s, 10m, 2h or 1d", EXIT.usage);
}
