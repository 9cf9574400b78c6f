import { type TokenHolder, tokenIdentity } from "@portico/adapters/identity/tokens";
import { defineAdapter, ports, type Secret } from "@portico/core";

export interface InstanceIdentityOptions {
  /** Tokens that the settings give. */
  readonly tokens: readonly TokenHolder[];
  /** Called when the owner's token was made just now: this is the only time to show it. */
  readonly onMade?: ((token: Secret) => void) | undefined;
}

/** Under this name the made token stands in `credentials.json`. */
const OWNER_TOKEN = "agentServiceToken";

/** The identities of an instance: tokens from the settings, and an owner's token of its own where they name no owner (open points 1). */
export const instanceIdentity = defineAdapter({
  name: "identity/instance",
  port: ports.identity,
  needs: { secrets: ports.secrets },
  async open(given, { tokens, onMade }: InstanceIdentityOptions, scope) {
    const owner = await instanceToken(given.secrets, tokens, onMade);
    const holders = tokens.includes(owner) ? tokens : [owner, ...tokens];
    const options = { tokens: holders };
    return tokenIdentity(options).spec.open(given, options, scope);
  },
});

/** The instance access token: the first owner's of the settings, or the one that is made at the first start and kept. */
export async function instanceToken(
  secrets: ports.Secrets,
  tokens: readonly TokenHolder[],
  onMade?: InstanceIdentityOptions["onMade"],
): Promise<TokenHolder> {
  const configured = tokens.find(({ role }) => role === "owner");
  if (configured) return configured;
  const { value, created } = await secrets.keep(OWNER_TOKEN, () => secrets.create("agent_"));
  if (created) onMade?.(value);
  return { token: value, userId: "owner", role: "owner" };
}
