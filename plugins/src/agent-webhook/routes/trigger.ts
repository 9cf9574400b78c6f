import { bearerToken, firstCharacters, parseJsonBody, ports, type RequestHead } from "@portico/core";
import { agentWebhookContract } from "../contract.ts";
import { triggerErrors } from "../errors.ts";
import { PROMPT_CHARACTERS, REPEATED_NAME_LENGTH } from "../limits.ts";
import { PromptTooLong, renderTemplate } from "../render-template.ts";
import { readWebhooks } from "../webhook-configuration.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

const ORIGIN = "webhook";

/** Accepts an event: the agent works on it in the background (specification 4.4). */
export function trigger(services: WebhookServices): WebhookHandlers["trigger"] {
  const { identity, turns, telemetry, usage } = services;
  const accept: WebhookHandlers["trigger"] = async ({ who: agent, body: text, head, signal, fail }) => {
    await authenticate(services, agent.id, head, signal);
    const { definition, metadataError } = agent;
    // The trigger also fails if another part of the definition is invalid: turns could not run. The sender of the event retries.
    const isBroken = metadataError !== undefined && metadataError !== "missing";
    const configuration = isBroken ? undefined : readWebhooks(definition.webhooks);
    if (!configuration) throw fail.agent_json_broken();
    const { enabled, events } = configuration;
    if (!enabled || events.size === 0) throw fail.webhook_not_enabled();
    const { event: name, payload = {} } = parseJsonBody(agentWebhookContract.trigger, text);
    const event = events.get(name);
    if (!event) throw fail.unknown_event(`Unknown event type: ${shortened(name)}`);
    const userId = event.fileScope?.userId ?? (await identity.instanceOwner(signal));
    // An instance without an owner has no user for whom the agent could work.
    if (userId === undefined) throw fail.webhook_not_enabled();
    const prompt = promptOf(event.promptTemplate, payload);
    const { toolIds, maxTurns } = event;
    try {
      const { runId } = await turns.start({
        ...{ agentId: agent.id, userId, prompt, toolIds, maxTurns },
        origin: { origin: ORIGIN, displayName: name },
      });
      telemetry.log.info("An event of a webhook was accepted", { agent: agent.id, event: name, run: runId });
    } catch (error) {
      throw toTriggerError(error);
    }
    return { accepted: true, agentId: agent.id, event: name };
  };
  return async (asked) => {
    const count = (outcome: ports.EndedWorkOutcome) => usage?.ended({ kind: "webhook", name: asked.who.id, outcome });
    try {
      const accepted = await accept(asked);
      count("completed");
      return accepted;
    } catch (error) {
      count("failed");
      throw error;
    }
  };
}

/** Checks the credential before the body is parsed, so that unauthorized senders learn nothing about the body (specification 5, rule 4). */
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

/** Unavailable stores are reported as such, because the sender's retry may succeed. */
function toTriggerError(error: unknown): unknown {
  const away = [ports.EngineFenced, ports.EngineUnavailable, ports.RecordsUnavailable];
  return away.some((each) => error instanceof each) ? triggerErrors.not_accepted(undefined, {}, error) : error;
}

/** Renders the prompt. If it is too long, the payload is too large, and the sender gets `body_too_large`. */
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
  const head = firstCharacters(REPEATED_NAME_LENGTH, name);
  return head.length < name.length ? `${head.toWellFormed()}…` : name;
}
