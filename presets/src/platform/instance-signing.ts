import { createHmacSigning } from "@portico/adapters/signing/hmac";
import { defineAdapter, ports } from "@portico/core";
import type { TokenHolder } from "@portico/adapters/identity/tokens";
import { instanceToken } from "./instance-identity.ts";

/** Signatures whose key derives from the instance access token: another token ends them all (specification 4.5, rule 10). */
export const instanceSigning = defineAdapter({
  name: "signing/instance",
  port: ports.signing,
  // Opened first, so that a token that is made now is shown.
  needs: { secrets: ports.secrets, identity: ports.identity },
  async open({ secrets }, { tokens }: { readonly tokens: readonly TokenHolder[] }): Promise<ports.Signing> {
    return createHmacSigning((await instanceToken(secrets, tokens)).token);
  },
});
