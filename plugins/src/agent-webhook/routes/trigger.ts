import { bearerToken, firstCharacters, parseJsonBody, type RequestHead } from "@portico/core";
import { agentWebhookContract } from "../contract.ts";
import { triggerErrors } from "../errors.ts";
import { REPEATED_NAME_LENGTH } from "../limits.ts";
import { acceptEvent, countingRefusals, takenEvents, toArrivalError } from "./accept-event.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** Accepts an event: the agent works on it in the background (specification 4.4). */
export function trigger(services: WebhookServices): WebhookHandlers["trigger"] {
  return ({ who: agent, body: text, head, signal, fail }) =>
    countingRefusals(services, agent.id, async (arrival) => {
      await authenticate(services, agent.id, head, signal);
      const events = takenEvents(agent);
      const { event: name, payload = {} } = parseJsonBody(agentWebhookContract.trigger, text);
      arrival.event = shortened(name);
      const event = events.get(name);
      if (!event) throw fail.unknown_event(`Unknown event type: ${arrival.event}`);
      await acceptEvent(services, agent.id, { name, event, fields: payload }, signal);
      return { accepted: true, agentId: agent.id, event: name } as const;
    });
}

/** Checks the credential before the body is parsed, so that unauthorized senders learn nothing about the body (specification 5, rule 4). */
async function authenticate(
  { secrets, identity, mode }: WebhookServices,
  agentId: string,
  head: RequestHead,
  signal: AbortSignal,
): Promise<void> {
  const presented = bearerToken(head) ?? "";
  const isSecret = await secrets.check(agentId, presented).catch((error: unknown) => Promise.reject(toArrivalError(error)));
  if (isSecret) return;
  if (isSecret === false) throw triggerErrors.invalid_webhook_secret();
  if (mode === "remote") throw triggerErrors.webhook_secret_required();
  if (!(await identity.isInstanceToken(presented, signal))) throw triggerErrors.invalid_embedded_token();
}

function shortened(name: string): string {
  const head = firstCharacters(REPEATED_NAME_LENGTH, name);
  return head.length < name.length ? `${head.toWellFormed()}…` : name;
}
