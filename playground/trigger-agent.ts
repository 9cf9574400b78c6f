import { fromEnv, secretFromEnv } from "@portico/core";
import * as v from "valibot";

/** One event for an agent. Prompts can name only top-level fields of the payload (4.4), so a mapping makes the payload flat. */
export interface AgentEvent {
  readonly event: string;
  readonly payload: {
    /** The complete notification of the third party. */
    readonly notification: object;
    readonly [field: string]: unknown;
  };
}

/** Maximum body of the trigger in bytes (4.4). Forwarders accept at most as much from third parties. */
export const TRIGGER_BYTES = 1024 * 1024;

/** The address of an agent's trigger, its secret, and the agent's events. */
export const triggerConfig = v.strictObject({
  /** The agent service's `/api/webhook/AGENT_ID`. */
  url: fromEnv("AGENT_TRIGGER_URL", v.pipe(v.string(), v.url("an address"))),
  secret: secretFromEnv("AGENT_WEBHOOK_SECRET"),
  /** The agent's events. Other events of the third party are not sent, because the trigger refuses unknown events. */
  events: fromEnv(
    "AGENT_EVENTS",
    v.array(v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "the name of an event"))),
  ),
  /** Less than ten seconds, because GitHub disconnects then. */
  answerWithinMs: v.optional(fromEnv("AGENT_ANSWER_WITHIN_MS", v.pipe(v.number(), v.integer(), v.minValue(1))), 8000),
});

/**
 * Send one event to its agent. Returns the answer for the third party:
 * - 200: accepted and durable;
 * - 204: not one of `events`, so it was not sent;
 * - 502: refused; the configuration of the forwarder or of the agent is wrong;
 * - 503: not possible now (5xx, 429, no answer). Stripe delivers the event again automatically, GitHub only on request.
 *
 * The trigger does not recognise duplicates (4.4), and the forwarder does not either. If the trigger gave no answer, it may have accepted the
 * event. An event that is delivered again then runs twice. The tools of such agents must tolerate that.
 *
 * Never throws. The answer contains neither the secret nor the event.
 *
 * @param signal ends the wait, as `answerWithinMs` does.
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
      // An agent service never redirects. The secret must not be sent to any other address.
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

/** The body must be checked, too: another server at a wrong address may also answer 200. */
const acceptance = v.pipe(v.string(), v.parseJson(), v.object({ accepted: v.literal(true) }));

/** Leaves out the whole notification if it does not fit. Prompts use only the mapped fields. */
function bodyOf({ event, payload }: AgentEvent): string {
  const body = JSON.stringify({ event, payload });
  if (Buffer.byteLength(body) <= TRIGGER_BYTES) return body;
  return JSON.stringify({ event, payload: { ...payload, notification: undefined } });
}

function notNow(): Response {
  return new Response("The agent could not be triggered now: deliver this again", { status: 503 });
}
