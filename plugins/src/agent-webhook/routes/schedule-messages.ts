import { deliveryPage } from "../delivery-page.ts";
import { readPage } from "../paging.ts";
import { managedAgent } from "./managed-agent.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** What an agent's background turns delivered to its user, the newest first. */
export function scheduleMessages({ agents, turns }: WebhookServices): WebhookHandlers["scheduleMessages"] {
  return async ({ params: { id }, query, signal }) => {
    const { limit, offset } = readPage(query);
    await managedAgent(agents, id);
    const { items, total } = await turns.deliveries(id, { limit, offset, signal });
    return deliveryPage(items, { total, limit, offset });
  };
}
