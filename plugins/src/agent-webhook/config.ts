import * as v from "valibot";

/** Options of agent webhooks. */
export const agentWebhookConfig = v.strictObject({
  /**
   * Whether only this machine's user can reach the instance. If an agent has no webhook secret, the instance access token triggers it on a
   * local instance, and no credential triggers it on a remote instance (specification 5, rule 4). Default: `local`.
   */
  mode: v.optional(v.picklist(["local", "remote"]), "local"),
  /** Whether the owner can manage webhooks over this service. With `false`, existing webhooks still work. Default: true. */
  management: v.optional(v.boolean(), true),
  /**
   * How long a webhook secret that the session of a sign-in link issues may be valid, in milliseconds. Default: as long as one that the owner's token
   * issues.
   */
  sessionIssuesMs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1000))),
});

export type AgentWebhookSettings = v.InferOutput<typeof agentWebhookConfig>;
