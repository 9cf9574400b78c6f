import { ports } from "@portico/core";
import { managedAgent, type WebhookHandlers, type WebhookServices } from "./webhook-services.ts";

/** What arrived at an agent's webhook, the newest first. */
export function listReceived({ agents, received }: WebhookServices): WebhookHandlers["received"] {
  return async ({ params: { id }, query: { status, limit, cursor }, fail }) => {
    await managedAgent(agents, id);
    try {
      const { items, next } = await received.page(id, { status, limit, after: cursor });
      const shown = items.map(({ value: { agentId: _agent, ...rest } }) => rest);
      return { items: shown, ...(next !== undefined && { cursor: next }) };
    } catch (error) {
      if (error instanceof ports.RecordCursorInvalid) throw fail.invalid_webhook_management_request();
      throw error;
    }
  };
}
