import { hmacSigning } from "@portico/adapters/signing/hmac";
import { defineAdapter, ports } from "@portico/core";
import { instanceToken, type InstanceTokenOptions } from "./instance-token.ts";

/**
 * Signatures of an instance, with keys that derive from the instance access token: whoever starts it with another one has invalidated
 * all that were given out (specification 4.5, rule 10). The options are those of `instanceIdentity`.
 */
export const instanceSigning = defineAdapter({
  name: "signing/instance",
  port: ports.signing,
  needs: { secrets: ports.secrets },
  async open({ secrets }, instance: InstanceTokenOptions, scope) {
    const { token } = await instanceToken(secrets, instance);
    const options = { key: token };
    return hmacSigning(options).spec.open({}, options, scope);
  },
});
