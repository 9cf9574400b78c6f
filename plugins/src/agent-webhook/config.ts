import * as v from "valibot";

/** Options of agent webhooks. */
export const agentWebhookConfig = v.strictObject({
  /**
   * Whether only this machine's user reaches the instance. On a local one an agent without a webhook secret is triggered with the instance
   * access token; on a remote one it is not triggered (specification 5, rule 4). Default: `local`.
   */
  mode: v.optional(v.picklist(["local", "remote"]), "local"),
  /** Whether the owner can manage webhooks here; without, existing configurations still trigger. Default: true. */
  management: v.optional(v.boolean(), true),
});

export type AgentWebhookSettings = v.InferOutput<typeof agentWebhookConfig>;
