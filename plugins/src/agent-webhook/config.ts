import { fromEnv, sessionIssuesSettings } from "@portico/core";
import * as v from "valibot";

/** Options of agent webhooks that presets have as settings of webhooks. */
export const agentWebhookSettings = {
  management: v.optional(
    fromEnv(
      "PORTICO_WEBHOOK_MANAGEMENT",
      v.boolean(),
      "Whether the owner can manage agent webhooks. If false, configured webhooks still accept triggers.",
    ),
    true,
  ),
};

/** Options of agent webhooks. */
export const agentWebhookConfig = v.strictObject({
  ...agentWebhookSettings,
  /**
   * Whether only this machine's user can reach the instance. If an agent has no webhook secret, the instance access token triggers it on a
   * local instance, and no credential triggers it on a remote instance (specification 5, rule 4). Default: `local`.
   */
  mode: v.optional(v.picklist(["local", "remote"]), "local"),
  ...sessionIssuesSettings,
});

/** The same after parsing. */
export type AgentWebhookSettings = v.InferOutput<typeof agentWebhookConfig>;
