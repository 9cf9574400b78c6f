import { managedAgent } from "./managed-agent.ts";
import { stepEndpoint } from "./step-endpoint.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** Enables or pauses an endpoint. */
export function setEnabled(services: WebhookServices): WebhookHandlers["setEnabled"] {
  return async ({ params: { id }, body }) => {
    await managedAgent(services.agents, id);
    const { enabled } = await stepEndpoint(services, id, () => ({ event: { type: body.enabled ? "enable" : "pause" } }));
    return { success: true, enabled };
  };
}

/** Creates a new secret of an endpoint. The old secret becomes invalid. */
export function rotateSecret({ agents, secrets }: WebhookServices): WebhookHandlers["rotateSecret"] {
  return async ({ params: { id } }) => {
    await managedAgent(agents, id);
    return { secret: (await secrets.rotate(id)).reveal() };
  };
}
