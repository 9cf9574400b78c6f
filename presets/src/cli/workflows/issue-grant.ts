import { existsSync } from "node:fs";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { createApp, ports, type Secret } from "@portico/core";
import { createGrants } from "@portico/plugins/workflow-service/grants";
import { dataDirectory } from "../../platform/data-directory.ts";
import { findOwnToken, type TokenOf } from "../../platform/own-token.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";

export interface GrantWish {
  readonly workflowId: string;
  /** Default: the instance's owner, as over the agent service. */
  readonly userId?: string | undefined;
  readonly bindingId?: string | undefined;
  /** Default: ten minutes. */
  readonly ttlMs?: number | undefined;
}

export interface IssuedGrant {
  readonly executionGrantId: string;
  readonly workflowId: string;
  readonly expiresAt: string;
}

/** Sign a grant with the instance's key, beside a running service or without one. Throws CommandFailed (69) where there is no key yet. */
export async function issueGrant(settings: PlatformSettings, wish: GrantWish): Promise<IssuedGrant> {
  const owner = settings.agent.tokens.find(({ role }) => role === "owner");
  const key = owner?.token ?? (await keptToken(settings, "agent"));
  if (!key) throw neverStarted(settings);
  const { workflowId, userId = owner?.userId ?? "owner", bindingId, ttlMs } = wish;
  const app = await createApp({ name: "grant", adapters: [systemClock(), randomIds(), hmacSigning({ key })] });
  try {
    const grants = createGrants({
      signing: app.port(ports.signing),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
    const { executionGrantId, grant } = await grants.issue({ workflowId, userId, bindingId, ttlMs });
    return { executionGrantId, workflowId, expiresAt: new Date(grant.expiresAt).toISOString() };
  } finally {
    await app.close();
  }
}

/** The workflow service's token. Throws CommandFailed (69) where there is none yet. */
export async function workflowToken(settings: PlatformSettings): Promise<Secret> {
  const token = settings.workflow.token ?? (await keptToken(settings, "workflow"));
  if (!token) throw neverStarted(settings);
  return token;
}

async function keptToken(settings: PlatformSettings, of: TokenOf): Promise<Secret | undefined> {
  const { credentials: path } = dataDirectory(settings.dataDir);
  if (!existsSync(path)) return undefined;
  const app = await createApp({ name: "credentials", adapters: [fileSecrets({ path })] });
  try {
    return await findOwnToken(app.port(ports.secrets), of);
  } catch (error) {
    if (error instanceof ports.SecretsUnavailable) throw new CommandFailed(error.message, EXIT.unavailable, error);
    throw error;
  } finally {
    await app.close();
  }
}

/** A token that this command made would never be shown to anybody: that is the start's to do. */
function neverStarted({ dataDir }: PlatformSettings): CommandFailed {
  const { path } = dataDirectory(dataDir);
  return new CommandFailed(
    `The data directory ${path} has no tokens yet: start the service on it once, or set the tokens in the configuration`,
    EXIT.unavailable,
  );
}
