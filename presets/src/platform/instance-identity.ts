import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { defineAdapter, ports } from "@portico/core";
import { instanceToken, type InstanceTokenOptions } from "./instance-token.ts";

/** The identities of an instance: tokens from the settings, and an owner's token of its own where they name no owner (open points 1). */
export const instanceIdentity = defineAdapter({
  name: "identity/instance",
  port: ports.identity,
  needs: { secrets: ports.secrets },
  async open(given, instance: InstanceTokenOptions, scope) {
    const owner = await instanceToken(given.secrets, instance);
    const { tokens } = instance;
    const options = { tokens: tokens.includes(owner) ? tokens : [owner, ...tokens] };
    return tokenIdentity(options).spec.open(given, options, scope);
  },
});
