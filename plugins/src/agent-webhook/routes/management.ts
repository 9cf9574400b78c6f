import { auditActor } from "@portico/core";
import { advanceEndpoint, type EndpointEvent, endpointState } from "../endpoint-state.ts";
import { managementErrors } from "../errors.ts";
import { isEventName, type WebhookConfiguration } from "../webhook-configuration.ts";
import { type WebhookChange, WebhookConfigurationChanged, WebhookConfigurationInvalid } from "../webhook-document.ts";
import { managedAgent, type WebhookHandlers, type WebhookServices } from "./webhook-services.ts";

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

/** An action on an endpoint, and the change of its configuration. */
export interface EndpointStep {
  readonly event: EndpointEvent;
  readonly change?: WebhookChange;
}

/**
 * One step of the endpoint (specification 3.1): stores its new state. `asks` returns the action for the present configuration. Throws the
 * errors of the management.
 */
export async function stepEndpoint(
  { document, secrets }: WebhookServices,
  agentId: string,
  asks: (configuration: WebhookConfiguration) => EndpointStep,
): Promise<{ readonly enabled: boolean; readonly makesSecret: boolean }> {
  let makesSecret = false;
  try {
    const { enabled } = await document.change(agentId, async (configuration) => {
      const { event, change } = asks(configuration);
      const { enabled, events } = configuration;
      const state = endpointState({ enabled, events: events.size, hasSecret: await secrets.has(agentId) });
      const next = advanceEndpoint(state, event);
      if ("refused" in next) throw managementErrors[next.refused]();
      makesSecret = next.makesSecret;
      return { ...change, enabled: next.state.status === "enabled" };
    });
    return { enabled, makesSecret };
  } catch (error) {
    throw toConfigurationError(error);
  }
}

/** Returns an agent's webhook configuration, and the tools that its events can use. */
export function readConfiguration({ agents, document, secrets, turns }: WebhookServices): WebhookHandlers["configuration"] {
  return async ({ params: { id }, signal }) => {
    await managedAgent(agents, id);
    const [{ enabled, events }, hasSecret, tools] = await Promise.all([
      document.read(id).catch((error: unknown) => Promise.reject(toConfigurationError(error))),
      secrets.has(id),
      turns.tools(signal),
    ]);
    return {
      enabled: endpointState({ enabled, events: events.size, hasSecret }).status === "enabled",
      hasSecret,
      events: [...events].map(([event, { promptTemplate, maxTurns, toolIds }]) => ({
        ...{ event, promptTemplate, maxTurns },
        toolIds: [...toolIds],
      })),
      availableTools: tools.map(({ id, name, riskLevel, requiresConfirmation }) => ({
        ...{ id, name, riskLevel, requiresConfirmation },
      })),
    };
  };
}

/** Translates errors of the configuration's document into the area's errors. Other errors are returned unchanged. */
export function toConfigurationError(error: unknown): unknown {
  if (error instanceof WebhookConfigurationChanged) return managementErrors.webhook_configuration_changed(undefined, {}, error);
  if (error instanceof WebhookConfigurationInvalid) return managementErrors.webhook_configuration_invalid(undefined, {}, error);
  return error;
}

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
