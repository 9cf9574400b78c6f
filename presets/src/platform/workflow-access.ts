import { defineAdapter, ports, type Secret } from "@portico/core";
import { serviceAccess, tokenAccess } from "@portico/plugins/workflow-service/access";
import { ownToken } from "./own-token.ts";

export interface WorkflowAccessOptions {
  /** The token that the settings give. */
  readonly token?: Secret | undefined;
  /** Called when the token was made just now: this is the only time to show it. */
  readonly onMade?: ((token: Secret) => void) | undefined;
}

/** Access to the workflow service of an instance: by the token of the settings, or one of its own (open points 1). */
export const workflowAccess = defineAdapter({
  name: "workflow-service/instance-access",
  port: serviceAccess,
  needs: { secrets: ports.secrets },
  async open(given, { token, onMade }: WorkflowAccessOptions, scope) {
    const options = { token: token ?? (await ownToken(given.secrets, "workflow", onMade)) };
    return tokenAccess(options).spec.open(given, options, scope);
  },
});
