import { deliveryPage, readPage } from "../delivery-page.ts";
import { managedAgent, type WebhookHandlers, type WebhookServices } from "./webhook-services.ts";

/** What an agent's background turns delivered to its user, the newest first. */
export function scheduleMessages({ agents, turns }: WebhookServices): WebhookHandlers["scheduleMessages"] {
  return async ({ params: { id }, query, signal }) => {
    const { limit, offset } = readPage(query);
    await managedAgent(agents, id);
    const { items, total } = await turns.deliveries(id, { limit, offset, signal });
    return deliveryPage(items, { total, limit, offset });
  };
}
