import { bearerToken, parseJsonBody, ports, type RequestHead } from "@portico/core";
import { agentWebhookContract } from "../contract.ts";
import { triggerErrors } from "../errors.ts";
import { PROMPT_CHARACTERS, REPEATED_NAME_LENGTH } from "../limits.ts";
import { PromptTooLong, renderTemplate } from "../render-template.ts";
import { readWebhooks } from "../webhook-configuration.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

const ORIGIN = "webhook";

/** Accepts an event: the agent works on it in the background (specification 4.4). */
export function trigger(services: WebhookServices): WebhookHandlers["trigger"] {
  const { identity, turns } = services;
  return async ({ who: agent, body: text, head, signal, fail }) => {
    await authenticate(services, agent.id, head, signal);
    const { definition, metadataError } = agent;
    // Also where only another part is wrong: its turns could do nothing, and the sender of the event tries again.
    const isBroken = metadataError !== undefined && metadataError !== "missing";
    const configuration = isBroken ? undefined : readWebhooks(definition.webhooks);
    if (!configuration) throw fail.agent_json_broken();
    const { enabled, events } = configuration;
    if (!enabled || events.size === 0) throw fail.webhook_not_enabled();
    const { event: name, payload = {} } = parseJsonBody(agentWebhookContract.trigger, text);
    const event = events.get(name);
    if (!event) throw fail.unknown_event(`Unknown event type: ${shortened(name)}`);
    const userId = event.fileScope?.userId ?? (await identity.instanceOwner(signal));
    // An instance without an owner has no user on whose behalf agents could work.
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
    return { accepted: true, agentId: agent.id, event: name };
  };
}

/** A sender that may not trigger is refused by its credential, before anything is said of the body (specification 5, rule 4). */
async function authenticate(
  { secrets, identity, mode }: WebhookServices,
  agentId: string,
  head: RequestHead,
  signal: AbortSignal,
): Promise<void> {
  const presented = bearerToken(head) ?? "";
  const isSecret = await secrets.check(agentId, presented).catch((error: unknown) => Promise.reject(toTriggerError(error)));
  if (isSecret) return;
  if (isSecret === false) throw triggerErrors.invalid_webhook_secret();
  if (mode === "remote") throw triggerErrors.webhook_secret_required();
  if (!(await identity.isInstanceToken(presented, signal))) throw triggerErrors.invalid_embedded_token();
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
    throw error;
  }
}

function shortened(name: string): string {
  return name.length <= REPEATED_NAME_LENGTH ? name : `${name.slice(0, REPEATED_NAME_LENGTH).toWellFormed()}…`;
}
