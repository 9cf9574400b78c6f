import { ports, ServiceError } from "@portico/core";
import { arrivalErrors } from "../errors.ts";
import { PROMPT_CHARACTERS } from "../limits.ts";
import { PromptTooLong, renderTemplate } from "../render-template.ts";
import { readWebhooks, type WebhookConfiguration, type WebhookEvent } from "../webhook-configuration.ts";
import type { WebhookServices } from "./webhook-services.ts";

const ORIGIN = "webhook";

/** An event for an agent, from its trigger or from a sender. */
export interface ArrivedEvent {
  readonly name: string;
  readonly event: WebhookEvent;
  /** The fields with which the template is filled in. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Idempotency key of the turn. Default: every event is a new turn. */
  readonly key?: string;
  /** By which it came. Absent for triggers. */
  readonly sender?: string;
}

/**
 * The events that an agent takes now. They are refused also if another part of the agent's file is invalid, because turns could not run. The
 * sender of the event sends it again. Throws `agent_json_broken` and `webhook_not_enabled`.
 */
export function takenEvents({ definition, metadataError }: ports.Agent): WebhookConfiguration["events"] {
  const isBroken = metadataError !== undefined && metadataError !== "missing";
  const configuration = isBroken ? undefined : readWebhooks(definition.webhooks);
  if (!configuration) throw arrivalErrors.agent_json_broken();
  const { enabled, events } = configuration;
  if (!enabled || events.size === 0) throw arrivalErrors.webhook_not_enabled();
  return events;
}

/** Accepts an event and counts it: it is durable when this resolves. Throws `webhook_not_enabled`, `body_too_large` and `not_accepted`. */
export async function acceptEvent(
  { identity, turns, received, telemetry, usage }: WebhookServices,
  agentId: string,
  { name, event, fields, key, sender }: ArrivedEvent,
  signal: AbortSignal,
): Promise<void> {
  const userId = event.fileScope?.userId ?? (await identity.instanceOwner(signal));
  // An instance without an owner has no user for whom the agent could work.
  if (userId === undefined) throw arrivalErrors.webhook_not_enabled();
  const prompt = promptOf(event.promptTemplate, fields);
  const { toolIds, maxTurns } = event;
  try {
    const { runId } = await turns.start({
      ...{ agentId, userId, prompt, toolIds, maxTurns, key },
      origin: { origin: ORIGIN, displayName: name },
    });
    telemetry.log.info("An event of a webhook was accepted", { agent: agentId, event: name, run: runId });
    usage?.ended({ kind: "webhook", name: agentId, outcome: "completed" });
    received.accepted({ agentId, sender, event: name }, runId);
  } catch (error) {
    throw toArrivalError(error);
  }
}

/** Unavailable stores are reported as such, because the sender's retry may succeed. */
export function toArrivalError(error: unknown): unknown {
  const away = [ports.EngineFenced, ports.EngineUnavailable, ports.RecordsUnavailable, ports.SealingUnavailable];
  return away.some((each) => error instanceof each) ? arrivalErrors.not_accepted(undefined, {}, error) : error;
}

/** What is known of an event that arrives: its sender, and the name that its sender gave it. */
export interface Arrival {
  sender?: string;
  event?: string;
}

/** Counts the events that `accept` refuses. `accept` says what it learns of the event. */
export async function countingRefusals<T>(
  { usage, received }: WebhookServices,
  agentId: string,
  accept: (arrival: Arrival) => Promise<T>,
): Promise<T> {
  const arrival: Arrival = {};
  try {
    return await accept(arrival);
  } catch (error) {
    usage?.ended({ kind: "webhook", name: agentId, outcome: "failed" });
    const reason = error instanceof ServiceError ? error.code : "internal_error";
    received.turnedAway({ agentId, ...arrival, status: "refused", reason });
    throw error;
  }
}

/** Renders the prompt. If it is too long, the payload is too large, and the sender gets `body_too_large`. */
function promptOf(template: string, fields: Readonly<Record<string, unknown>>): string {
  try {
    return renderTemplate(template, fields, PROMPT_CHARACTERS);
  } catch (error) {
    if (error instanceof PromptTooLong)
      throw arrivalErrors.body_too_large(undefined, { prompt: `would be longer than ${PROMPT_CHARACTERS} characters` }, error);
    throw error;
  }
}
