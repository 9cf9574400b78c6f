import { auditActor } from "@portico/core";
import { managedAgent } from "./managed-agent.ts";
import { stepEndpoint } from "./step-endpoint.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** Enables or pauses an endpoint. */
export function setEnabled(services: WebhookServices): WebhookHandlers["setEnabled"] {
  return async ({ params: { id }, body, who, head }) => {
    await managedAgent(services.agents, id);
    const type = body.enabled ? "enable" : "pause";
    const fact = { action: `webhook.${type}`, object: id, who: auditActor(who, head) };
    const { enabled } = await services.audit.attempt(fact, () => stepEndpoint(services, id, () => ({ event: { type } })));
    return { success: true, enabled };
  };
}

/** Creates a new secret of an endpoint. The old secret becomes invalid. */
export function rotateSecret({ agents, secrets, latestEndOf }: WebhookServices): WebhookHandlers["rotateSecret"] {
  return async ({ params: { id }, who, head }) => {
    await managedAgent(agents, id);
    return { secret: (await secrets.rotate(id, { by: auditActor(who, head), expiresAt: latestEndOf(who) })).reveal() };
  };
}
