import type { TokenHolder } from "@portico/adapters/identity/tokens";
import type { ports, Secret } from "@portico/core";
import { ownToken } from "./own-token.ts";

export interface InstanceTokenOptions {
  /** Tokens that the settings give. */
  readonly tokens: readonly TokenHolder[];
  /** Called when the owner's token was made just now: this is the only time to show it. */
  readonly onMade?: ((token: Secret) => void) | undefined;
}

/**
 * The instance access token and its holder (open points 1): the first owner's of the settings, or else one of the instance's own, which
 * is made at the first start. Of all who ask with the same options and secrets, whoever comes first makes it and calls `onMade`.
 */
export async function instanceToken(secrets: ports.Secrets, { tokens, onMade }: InstanceTokenOptions): Promise<TokenHolder> {
  const given = tokens.find(({ role }) => role === "owner");
  if (given) return given;
  return { token: await ownToken(secrets, "agent", onMade), userId: "owner", role: "owner" };
}
