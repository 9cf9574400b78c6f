import type { ports, Secret } from "@portico/core";

/** Services whose token an instance makes for itself where no setting gives one (open points 1). */
export type TokenOf = "agent" | "workflow";

/** Their names in `credentials.json`, and how their values begin. */
const OWN_TOKENS = {
  agent: { name: "agentServiceToken", prefix: "agent_" },
  workflow: { name: "workflowServiceToken", prefix: "workflow_" },
} as const satisfies Record<TokenOf, object>;

/** The instance's own token, made at the first start; `onMade` is called by whoever makes it, for this is the only time to show it. */
export async function ownToken(secrets: ports.Secrets, of: TokenOf, onMade?: (token: Secret) => void): Promise<Secret> {
  const { name, prefix } = OWN_TOKENS[of];
  const { value, created } = await secrets.keep(name, () => secrets.create(prefix));
  if (created) onMade?.(value);
  return value;
}

/** The same where it was made before, and undefined where it was not. */
export async function findOwnToken(secrets: ports.Secrets, of: TokenOf): Promise<Secret | undefined> {
  const notMade = new Error("No token is made here");
  try {
    const { value } = await secrets.keep(OWN_TOKENS[of].name, () => {
      throw notMade;
    });
    return value;
  } catch (error) {
    if (error === notMade) return undefined;
    throw error;
  }
}
