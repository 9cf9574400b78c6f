import { createSignedTokens, CREDENTIAL_PREFIXES, type ports, type SignedTokens } from "@portico/core";
import { SHORT_LIVED_MS } from "./limits.ts";

/**
 * Short-lived tokens of the workflow service, for pages whose user is signed in to the agent service. They are signed with the instance's
 * key, so every process of an instance accepts them. No other surface does.
 */
export function createShortLivedTokens(given: {
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}): SignedTokens {
  return createSignedTokens(
    { purpose: "workflow-service-token", prefix: CREDENTIAL_PREFIXES.shortLivedWorkflowToken, lifetimeMs: SHORT_LIVED_MS },
    given,
  );
}
