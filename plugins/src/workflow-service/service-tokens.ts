import { auditActor, definePlugin, optional, ownerGuard, ownerScheme, ports } from "@portico/core";
import * as v from "valibot";
import { serviceTokenContract, serviceTokenErrors } from "./service-tokens-contract.ts";
import { createShortLivedTokens } from "./access/service-access.ts";

/**
 * The owner's short-lived tokens of the workflow service, for presets that have an agent service beside the workflows: with them, a page
 * needs only the owner's sign-in.
 */
export const serviceTokens = definePlugin({
  name: "service-tokens",
  summary: "Short-lived tokens of the workflow service, for the instance's owner.",
  config: v.strictObject({}),
  needs: { signing: ports.signing, identity: ports.identity, clock: ports.clock, ids: ports.ids, audit: optional(ports.audit) },
  contract: serviceTokenContract,
  security: { owner: ownerScheme },
  capabilities: () => ["serviceTokens"],
  guards: ({ identity }) => ({ owner: ownerGuard(identity, serviceTokenErrors) }),
  setup({ audit, ...given }) {
    const tokens = createShortLivedTokens(given);
    return {
      async issue({ who, head, fail }) {
        try {
          const { token, tokenId, expiresAt } = await tokens.issue();
          // A token is not stored. It exists when it is returned, after this.
          await audit?.record({ action: "service-token.issue", object: tokenId, who: auditActor(who, head) });
          return { token: token.reveal(), expiresAt: new Date(expiresAt).toISOString() };
        } catch (error) {
          throw error instanceof ports.SigningUnavailable ? fail.signing_unavailable(undefined, undefined, error) : error;
        }
      },
    };
  },
});
