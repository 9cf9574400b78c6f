import { fromEnv, secretFromEnv } from "@portico/core";
import * as v from "valibot";

/** One event for an agent. Prompts name top-level fields of the payload alone (4.4), so that a mapping makes it flat. */
export interface AgentEvent {
  readonly event: string;
  readonly payload: {
    /** All that the third party sent. */
    readonly notification: object;
    readonly [field: string]: unknown;
  };
}

/** Bytes that the trigger takes (4.4). Forwarders take no more than that from third parties. */
export const TRIGGER_BYTES = 1024 * 1024;

/** Where an agent is triggered, and with what. */
export const triggerConfig = v.strictObject({
  /** The agent service's `/api/webhook/AGENT_ID`. */
  url: fromEnv("AGENT_TRIGGER_URL", v.pipe(v.string(), v.url("an address"))),
  secret: secretFromEnv("AGENT_WEBHOOK_SECRET"),
  /** Events that the agent has. Third parties send others, too, and the trigger refuses what it does not know. */
  events: fromEnv(
    "AGENT_EVENTS",
    v.array(v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "the name of an event"))),
  ),
  /** GitHub hangs up after ten seconds. */
  answerWithinMs: v.optional(fromEnv("AGENT_ANSWER_WITHIN_MS", v.pipe(v.number(), v.integer(), v.minValue(1))), 8000),
});

/**
 * Send one event to its agent. Gives what the third party is to be told:
 * - 200: accepted, and durable before the trigger said so;
 * - 204: not one of `events`, not sent;
 * - 502: refused; somebody has to mend the configuration here or there;
 * - 503: not now (5xx, 429, no answer). Stripe then delivers it again by itself, GitHub when somebody asks it to.
 *
 * The trigger does not recognise duplicates (4.4), and neither does this: after 503 without an answer the event may have been
 * accepted all the same, and runs twice when it is delivered again. Tools of such agents have to bear that.
 *
 * @param signal ends the wait, as `answerWithinMs` does. Never throws; nothing of the secret or the event is in the answer.
 */
export async function triggerAgent(
  { url, secret, events, answerWithinMs }: v.InferOutput<typeof triggerConfig>,
  { event, payload }: AgentEvent,
  signal: AbortSignal,
): Promise<Response> {
  if (!events.includes(event)) return new Response(null, { status: 204 });
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${secret.reveal()}`, "content-type": "application/json" },
      body: bodyOf({ event, payload }),
      // An agent service does not move its callers elsewhere, and the secret is for this address alone.
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]),
    });
    const text = await answer.text();
    if (answer.status === 429 || answer.status >= 500) return notNow();
    if (answer.ok && v.is(acceptance, text)) return Response.json({ accepted: true, event });
    return new Response(`The agent's trigger did not accept the event (${answer.status})`, { status: 502 });
  } catch {
    return notNow();
  }
}

/** Whatever else listens at a wrong address may answer 200, too. */
const acceptance = v.pipe(v.string(), v.parseJson(), v.object({ accepted: v.literal(true) }));

/** Without the whole notification where it would not fit: a mapping's own fields are what prompts are made of. */
function bodyOf({ event, payload }: AgentEvent): string {
  const body = JSON.stringify({ event, payload });
  if (Buffer.byteLength(body) <= TRIGGER_BYTES) return body;
  return JSON.stringify({ event, payload: { ...payload, notification: undefined } });
}

function notNow(): Response {
  return new Response("The agent could not be triggered now: deliver this again", { status: 503 });
}
