import { auditActor } from "@portico/core";
import { managementErrors } from "../errors.ts";
import { isEventName } from "../webhook-configuration.ts";
import { managedAgent } from "./managed-agent.ts";
import { stepEndpoint } from "./step-endpoint.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** Saves an event. The first save of an endpoint creates its secret. */
export function saveEvent(services: WebhookServices): WebhookHandlers["saveEvent"] {
  const { agents, secrets, audit, latestEndOf } = services;
  return async ({ params: { id, event: name }, body, who, head, signal, fail }) => {
    await managedAgent(agents, id);
    if (!isEventName(name)) throw fail.invalid_webhook_event();
    await assertTools(services, body.toolIds, signal);
    const actor = auditActor(who, head);
    const { makesSecret } = await audit.attempt({ action: "webhook-event.save", object: `${id}/${name}`, who: actor }, () =>
      stepEndpoint(services, id, ({ events }) => ({
        event: { type: "event-saved", isNew: !events.has(name) },
        // 4.3, rule 1: the event's runs may read the files of the user who saved it. Callers cannot choose the permissions.
        change: { save: { ...body, name, fileScope: { userId: who.userId } } },
      })),
    );
    // The secret is created after the configuration is stored. After a kill in between, the next save creates it.
    const secret = makesSecret ? await secrets.makeFirst(id, { by: actor, expiresAt: latestEndOf(who) }) : undefined;
    return { success: true, enabled: true, event: name, ...(secret && { secret: secret.reveal() }) };
  };
}

/** Deletes an event. */
export function deleteEvent(services: WebhookServices): WebhookHandlers["deleteEvent"] {
  return async ({ params: { id, event: name }, who, head, fail }) => {
    await managedAgent(services.agents, id);
    if (!isEventName(name)) throw fail.invalid_webhook_event();
    const fact = { action: "webhook-event.delete", object: `${id}/${name}`, who: auditActor(who, head) };
    const { enabled } = await services.audit.attempt(fact, () =>
      stepEndpoint(services, id, ({ events }) => {
        if (!events.has(name)) throw fail.webhook_event_not_found();
        return { event: { type: "event-deleted" }, change: { remove: name } };
      }),
    );
    return { success: true, enabled };
  };
}

async function assertTools({ turns }: WebhookServices, toolIds: readonly string[], signal: AbortSignal): Promise<void> {
  if (toolIds.length === 0) return;
  const available = new Set((await turns.tools(signal)).map(({ id }) => id));
  const missing = toolIds.filter((id) => !available.has(id));
  if (missing.length > 0) throw managementErrors.webhook_tool_unavailable(undefined, { toolIds: missing });
}
