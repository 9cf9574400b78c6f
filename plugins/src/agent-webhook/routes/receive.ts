import { firstCharacters, parseJsonBody, ports, type RequestHead } from "@portico/core";
import { agentWebhookContract } from "../contract.ts";
import { notificationErrors } from "../errors.ts";
import { REPEATED_NAME_LENGTH, TIMESTAMP_TOLERANCE_MS } from "../limits.ts";
import { notificationFields } from "../senders/notification-fields.ts";
import { readNotification } from "../senders/read-notification.ts";
import type { SenderKind } from "../senders/sender-rules.ts";
import { verifySignature, type VerifiedRequest } from "../senders/verify-signature.ts";
import { acceptEvent, countingRefusals, takenEvents, toArrivalError } from "./accept-event.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

const FORM = "application/x-www-form-urlencoded";

/**
 * Takes a notification that its sender signed. The signature is checked before the body is parsed. A repeated delivery gets the answer of the
 * first, and is not worked on again.
 */
export function receive(services: WebhookServices): WebhookHandlers["receive"] {
  const { senders, turns, received } = services;
  return ({ who: agent, params, body: text, head, signal, fail }) =>
    countingRefusals(services, agent.id, async (arrival) => {
      const found = await reached(senders.find(agent.id, params.sender));
      if (!found) throw fail.sender_not_found();
      const { sender, kind, events: mapped, secrets } = found;
      arrival.sender = sender;
      if (kind !== "github" && isForm(head)) throw fail.unsupported_media_type();
      // The signed bytes cannot be made again from a text that is not UTF-8.
      if (text === undefined) throw fail.invalid_json();
      const request = { header: (name: string) => head.header(name), body: text };
      const verified = inTime(services, verifySignature(kind, request, await reached(secrets())));
      const payload = parseJsonBody(agentWebhookContract.receive, jsonOf(kind, head, text));
      const notification = readNotification(kind, request, { payload, verified });
      if (!notification) throw fail.event_not_named();
      if (notification.challenge !== undefined) return { challenge: notification.challenge };

      const events = takenEvents(agent);
      const theirs = notification.names.find((each) => mapped.has(each)) ?? "";
      arrival.event = firstCharacters(REPEATED_NAME_LENGTH, theirs || (notification.names[0] ?? "")).toWellFormed();
      const name = mapped.get(theirs);
      if (name === undefined) {
        received.turnedAway({ agentId: agent.id, ...arrival, status: "ignored", reason: "not_mapped" });
        return { accepted: false, reason: "not_mapped" } as const;
      }
      const event = events.get(name);
      if (!event) throw fail.unknown_event(`Unknown event type: ${name}`);
      const accepted = { accepted: true, agentId: agent.id, event: name } as const;
      const key = `webhook:${agent.id}/${sender}/${notification.delivery}`;
      // Known as long as its run. Two simultaneous deliveries start one turn, because they have one key.
      const earlier = await reached(turns.find(key));
      if (earlier) {
        received.accepted({ agentId: agent.id, sender, event: name }, earlier.runId);
        return { ...accepted, duplicate: true } as const;
      }
      const fields = notificationFields(event.promptTemplate, payload, { sender, event: theirs });
      await acceptEvent(services, agent.id, { name, event, fields, key, sender }, signal);
      return accepted;
    });
}

/** Throws `invalid_signature`, and `timestamp_outside_tolerance` for a request that may be the repetition of an old one. */
function inTime({ clock }: WebhookServices, verified: VerifiedRequest | undefined): VerifiedRequest {
  if (!verified) throw notificationErrors.invalid_signature();
  const { signedAt = clock.now() } = verified;
  if (Math.abs(clock.now() - signedAt) > TIMESTAMP_TOLERANCE_MS) throw notificationErrors.timestamp_outside_tolerance();
  return verified;
}

function isForm(head: RequestHead): boolean {
  return (head.header("content-type") ?? "").trim().toLowerCase().startsWith(FORM);
}

/** GitHub sends a form unless its owner selects JSON. */
function jsonOf(kind: SenderKind, head: RequestHead, text: string): string | undefined {
  return kind === "github" && isForm(head) ? (new URLSearchParams(text).get("payload") ?? undefined) : text;
}

async function reached<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof ports.SealBroken
      ? notificationErrors.sender_secret_unreadable(undefined, {}, error)
      : toArrivalError(error);
  }
}
