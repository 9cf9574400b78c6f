import { bearerToken, definePlugin, parseJsonBody, ports, type RequestHead } from "@portico/core";
import { agentWebhookConfig } from "./config.ts";
import { agentWebhookContract } from "./contract.ts";
import { deliveryPage } from "./delivery-page.ts";
import { advanceEndpoint, type EndpointEvent, endpointState } from "./endpoint-state.ts";
import { managementErrors, triggerErrors } from "./errors.ts";
import { agentGuard, ownerGuard } from "./guards.ts";
import { PROMPT_CHARACTERS, REPEATED_NAME_LENGTH } from "./limits.ts";
import { readPage } from "./paging.ts";
import { PayloadTooDeep, PromptTooLong, renderTemplate } from "./render-template.ts";
import { isEventName, readWebhooks, type WebhookConfiguration } from "./webhook-configuration.ts";
import {
  createWebhookDocument,
  type WebhookChange,
  WebhookConfigurationChanged,
  WebhookConfigurationInvalid,
} from "./webhook-document.ts";
import { createWebhookSecrets } from "./webhook-secrets.ts";

/** Which source of documents has the agents. */
const SOURCE = "agents";
const ORIGIN = "webhook";

/** Events from outside that agents work on in the background, and their management by the instance's owner (specification 4.3 and 4.4). */
export const agentWebhook = definePlugin({
  name: "agent-webhook",
  summary: "Events from outside that an agent works on in the background, and what can be triggered.",
  config: agentWebhookConfig,
  needs: {
    agents: ports.agents,
    documents: ports.documents,
    records: ports.records,
    secrets: ports.secrets,
    identity: ports.identity,
    turns: ports.backgroundTurns,
  },
  contract: agentWebhookContract,
  guards: ({ identity, agents }, settings) => ({ owner: ownerGuard(identity, settings), agent: agentGuard(agents) }),
  setup(given, { mode }) {
    const { agents, identity, turns } = given;
    const documents = given.documents.find(({ id }) => id === SOURCE);
    if (!documents) throw new TypeError(`No source of documents is called ${SOURCE}`);
    const secrets = createWebhookSecrets(given);
    const document = createWebhookDocument({ documents });

    /** Throws `invalid_agent_id` and `agent_not_found`. */
    const agentOf = async (id: string): Promise<ports.Agent> => {
      if (!ports.AGENT_ID.test(id)) throw managementErrors.invalid_agent_id();
      const agent = await agents.find(id);
      if (!agent) throw managementErrors.agent_not_found();
      return agent;
    };

    const assertTools = async (toolIds: readonly string[], signal: AbortSignal): Promise<void> => {
      if (toolIds.length === 0) return;
      const available = new Set((await turns.tools(signal)).map(({ id }) => id));
      const missing = toolIds.filter((id) => !available.has(id));
      if (missing.length > 0) throw managementErrors.webhook_tool_unavailable(undefined, { toolIds: missing });
    };

    /** One step of the endpoint (specification 3.1): what it is then, written down. `asks` says what is asked for, seeing what is there. */
    const step = async (
      agentId: string,
      asks: (configuration: WebhookConfiguration) => { readonly event: EndpointEvent; readonly change?: WebhookChange },
    ): Promise<{ readonly enabled: boolean; readonly makesSecret: boolean }> => {
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
        throw toServiceError(error);
      }
    };

    /** Whoever may not trigger is refused by its credential, before anything is said of the body (specification 5, rule 4). */
    const authenticate = async (agentId: string, head: RequestHead, signal: AbortSignal): Promise<void> => {
      const presented = bearerToken(head) ?? "";
      const isSecret = await secrets.check(agentId, presented).catch((error: unknown) => Promise.reject(toTriggerError(error)));
      if (isSecret) return;
      if (isSecret === false) throw triggerErrors.invalid_webhook_secret();
      if (mode === "remote") throw triggerErrors.webhook_secret_required();
      if (!(await identity.isInstanceToken(presented, signal))) throw triggerErrors.invalid_embedded_token();
    };

    return {
      async configuration({ params: { id }, signal }) {
        await agentOf(id);
        const [{ enabled, events }, hasSecret, tools] = await Promise.all([
          document.read(id).catch((error: unknown) => Promise.reject(toServiceError(error))),
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
            id,
            name,
            riskLevel,
            requiresConfirmation,
          })),
        };
      },

      async saveEvent({ params: { id, event: name }, body, who, signal, fail }) {
        await agentOf(id);
        if (!isEventName(name)) throw fail.invalid_webhook_event();
        await assertTools(body.toolIds, signal);
        const { makesSecret } = await step(id, ({ events }) => ({
          event: { type: "event-saved", isNew: !events.has(name) },
          // 4.3, rule 1: whose files its runs may read is whoever saved it; callers send no permissions.
          change: { save: { ...body, name, fileScope: { userId: who.userId } } },
        }));
        // After the configuration: a kill in between leaves an endpoint without a secret, and the next save makes it.
        const secret = makesSecret ? await secrets.makeFirst(id) : undefined;
        return { success: true as const, enabled: true as const, event: name, ...(secret && { secret: secret.reveal() }) };
      },

      async setEnabled({ params: { id }, body }) {
        await agentOf(id);
        const { enabled } = await step(id, () => ({ event: { type: body.enabled ? "enable" : "pause" } }));
        return { success: true as const, enabled };
      },

      async deleteEvent({ params: { id, event: name }, fail }) {
        await agentOf(id);
        if (!isEventName(name)) throw fail.invalid_webhook_event();
        const { enabled } = await step(id, ({ events }) => {
          if (!events.has(name)) throw fail.webhook_event_not_found();
          return { event: { type: "event-deleted" }, change: { remove: name } };
        });
        return { success: true as const, enabled };
      },

      async rotateSecret({ params: { id } }) {
        await agentOf(id);
        return { secret: (await secrets.rotate(id)).reveal() };
      },

      async scheduleMessages({ params: { id }, query, signal }) {
        const { limit, offset } = readPage(query);
        await agentOf(id);
        const { items, total } = await turns.deliveries(id, { limit, offset, signal });
        return deliveryPage(items, { total, limit, offset });
      },

      async trigger({ who: agent, body: text, head, signal, fail }) {
        await authenticate(agent.id, head, signal);
        const { definition, metadataError } = agent;
        // Also where only another part is wrong: its turns could do nothing, and who sent the event tries again.
        const isBroken = metadataError !== undefined && metadataError !== "missing";
        const configuration = isBroken ? undefined : readWebhooks(definition.webhooks);
        if (!configuration) throw fail.agent_json_broken();
        const { enabled, events } = configuration;
        if (!enabled || events.size === 0) throw fail.webhook_not_enabled();
        const { event: name, payload = {} } = parseJsonBody(agentWebhookContract.trigger, text);
        const event = events.get(name);
        if (!event) throw fail.unknown_event(`Unknown event type: ${shortened(name)}`);
        const userId = event.fileScope?.userId ?? (await identity.instanceOwner(signal));
        // An instance without an owner has nobody on whose behalf agents could work.
        if (userId === undefined) throw fail.webhook_not_enabled();
        const prompt = promptOf(event.promptTemplate, payload);
        const { toolIds, maxTurns } = event;
        try {
          await turns.start({
            ...{ agentId: agent.id, userId, prompt, toolIds, maxTurns },
            origin: { origin: ORIGIN, displayName: name },
          });
        } catch (error) {
          throw toTriggerError(error);
        }
        return { accepted: true as const, agentId: agent.id, event: name };
      },
    };
  },
});

function toServiceError(error: unknown): unknown {
  if (error instanceof WebhookConfigurationChanged) return managementErrors.webhook_configuration_changed(undefined, {}, error);
  if (error instanceof WebhookConfigurationInvalid) return managementErrors.webhook_configuration_invalid(undefined, {}, error);
  return error;
}

/** A store that is away may be back when the sender tries again. */
function toTriggerError(error: unknown): unknown {
  const away = [ports.EngineFenced, ports.EngineUnavailable, ports.RecordsUnavailable];
  return away.some((each) => error instanceof each) ? triggerErrors.not_accepted(undefined, {}, error) : error;
}

/** Throws as what the sender can do about it. */
function promptOf(template: string, payload: Readonly<Record<string, unknown>>): string {
  try {
    return renderTemplate(template, payload, PROMPT_CHARACTERS);
  } catch (error) {
    if (error instanceof PromptTooLong)
      throw triggerErrors.body_too_large(undefined, { prompt: `would be longer than ${PROMPT_CHARACTERS} characters` }, error);
    if (error instanceof PayloadTooDeep) throw triggerErrors.invalid_request(undefined, { payload: "nests too deep" }, error);
    throw error;
  }
}

function shortened(name: string): string {
  return name.length <= REPEATED_NAME_LENGTH ? name : `${name.slice(0, REPEATED_NAME_LENGTH).toWellFormed()}…`;
}
