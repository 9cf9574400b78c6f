import { CREDENTIAL_PREFIXES, type ports, type Secret } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";

/** Services whose token the instance creates if no setting gives one (open points 1). */
export type TokenOf = "agent" | "workflow";

/** Their names in `credentials.json`, and the prefixes of their values. */
const OWN_TOKENS = {
  agent: { name: "agentServiceToken", prefix: CREDENTIAL_PREFIXES.agentToken },
  workflow: { name: "workflowServiceToken", prefix: CREDENTIAL_PREFIXES.workflowToken },
} as const satisfies Record<TokenOf, object>;

/** The instance's own token, created at the first start. The call that creates it calls `onMade`, because the token can be shown only then. */
export async function ownToken(secrets: ports.Secrets, of: TokenOf, onMade?: (token: Secret) => void): Promise<Secret> {
  const { name, prefix } = OWN_TOKENS[of];
  const { value, created } = await secrets.keep(name, () => secrets.create(prefix));
  if (created) onMade?.(value);
  return value;
}

/** Replaces the instance's own token. A service that runs accepts both for a time, from when it has read the new one. */
export async function replaceOwnToken(secrets: ports.Secrets, of: TokenOf): Promise<Secret> {
  const { name, prefix } = OWN_TOKENS[of];
  const token = secrets.create(prefix);
  await secrets.replace(name, token);
  return token;
}

/** The same token if it exists, otherwise undefined. */
export function findOwnToken(secrets: ports.Secrets, of: TokenOf): Promise<Secret | undefined> {
  return secrets.find(OWN_TOKENS[of].name);
}

/**
 * All tokens of the agent service and the workflow service, from the settings and created by the instance itself. Safe tokens,
 * webhook secrets and execution grants are not included: only their digests are stored.
 */
export async function serviceTokens(
  { agent, workflow }: Pick<PlatformSettings, "agent" | "workflow">,
  secrets: ports.Secrets,
): Promise<readonly Secret[]> {
  const made = await Promise.all([findOwnToken(secrets, "agent"), findOwnToken(secrets, "workflow")]);
  return [...agent.tokens.map(({ token }) => token), workflow.token, ...made].filter((token) => token !== undefined);
}
