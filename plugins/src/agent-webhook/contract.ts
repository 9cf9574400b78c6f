import { defineContract, jsonObject, maxCharacters, objectOnly, readParameters, record, reply } from "@portico/core/contract";
import * as v from "valibot";
import { managementEnvelope, triggerEnvelope } from "./envelope.ts";
import { arrivalErrors, managementErrors, notificationErrors, triggerErrors } from "./errors.ts";
import {
  EVENT_SAVE_BYTES,
  NOTIFICATION_BYTES,
  RECEIVED_LIMIT,
  RECEIVED_LIMIT_MAXIMUM,
  SENDER_EVENT_LENGTH,
  SENDER_EVENTS,
  SENDER_SECRET_LENGTH,
  TRIGGER_BYTES,
} from "./limits.ts";
import { SENDER_KINDS } from "./senders/sender-rules.ts";
import { eventBody, isEventName } from "./webhook-configuration.ts";

const text = v.string();
const byId = v.strictObject({ id: text });
const byEvent = v.strictObject({ id: text, event: text });
const bySender = v.strictObject({ id: text, sender: text });
/** A query parameter as received. A repeated parameter is a list, which the paging refuses. */
const parameter = v.optional(v.union([text, v.array(text)]));

/** Specification 2.5. */
const configuration = v.object({
  enabled: v.boolean(),
  hasSecret: v.boolean(),
  events: v.array(v.object({ event: text, promptTemplate: text, maxTurns: v.number(), toolIds: v.array(text) })),
  availableTools: v.array(
    v.object({
      id: text,
      name: text,
      riskLevel: v.picklist(["low", "medium", "high", "critical"]),
      requiresConfirmation: v.boolean(),
    }),
  ),
});

/** Specification 2.6. */
const scheduleMessage = v.object({
  id: text,
  runId: text,
  deliveredAt: text,
  origin: text,
  displayName: text,
  delivery: v.object({
    message: v.optional(v.union([text, v.array(v.looseObject({ type: text }))])),
    attachments: v.array(text),
  }),
  text: v.optional(text),
});

const senderKind = v.picklist(SENDER_KINDS);
const senderSecret = v.pipe(text, v.nonEmpty(), maxCharacters(SENDER_SECRET_LENGTH));
/** The agent's events, by the sender's names. */
const senderEvents = v.pipe(
  record(
    v.pipe(text, v.regex(/^[!-~]+$/, "a name of printable ASCII without spaces"), maxCharacters(SENDER_EVENT_LENGTH)),
    v.pipe(text, v.check(isEventName, "a name of an event")),
  ),
  v.check((events) => Object.keys(events).length > 0, "at least one event"),
  v.check((events) => Object.keys(events).length <= SENDER_EVENTS, `at most ${SENDER_EVENTS} events`),
);

/** Events that arrived: one that was accepted, or those of an hour that were not, for the same reason. */
const receivedEvent = v.object({
  status: v.picklist(["accepted", "ignored", "refused"]),
  /** When it arrived last, and first: ISO 8601. */
  at: text,
  firstAt: text,
  /** How often it arrived. */
  count: v.number(),
  /** The sender by which it came. Absent for triggers. */
  sender: v.optional(text),
  event: v.optional(text),
  /** Why it was not accepted: the code of the error, or `not_mapped`. */
  reason: v.optional(text),
  runId: v.optional(text),
});

const {
  unauthorized,
  webhook_owner_required,
  webhook_management_unavailable,
  invalid_webhook_management_request,
  webhook_body_too_large,
  origin_not_allowed,
  invalid_agent_id,
  agent_not_found,
  webhook_configuration_changed,
  webhook_configuration_invalid,
  webhook_management_failed,
} = managementErrors;
const owned = { unauthorized, webhook_owner_required, webhook_management_unavailable };
const ofAgent = { ...owned, invalid_agent_id, agent_not_found, webhook_management_failed };
const changing = { ...ofAgent, webhook_configuration_changed, webhook_configuration_invalid };
const faults = {
  invalid_request: invalid_webhook_management_request,
  invalid_json: invalid_webhook_management_request,
  body_too_large: webhook_body_too_large,
  internal_error: webhook_management_failed,
  origin_not_allowed,
};

const ofSender = { invalid_webhook_sender: managementErrors.invalid_webhook_sender };
const arrivalFaults = {
  invalid_request: arrivalErrors.invalid_request,
  invalid_json: arrivalErrors.invalid_json,
  body_too_large: arrivalErrors.body_too_large,
  unsupported_media_type: arrivalErrors.unsupported_media_type,
  origin_not_allowed: arrivalErrors.origin_not_allowed,
};

/** Management of events, senders, secrets and deliveries for the owner, and the doors for external senders (specification 4.3 and 4.4). */
export const agentWebhookContract = defineContract(
  { surface: "agent", auth: "owner", envelope: managementEnvelope, faults },
  {
    configuration: {
      method: "GET",
      path: "/api/agents/:id/webhooks",
      summary: "Read an agent's webhook configuration",
      params: byId,
      success: reply.json(configuration),
      errors: { ...ofAgent, webhook_configuration_invalid },
    },
    saveEvent: {
      method: "PUT",
      path: "/api/agents/:id/webhooks/events/:event",
      summary: "Create or replace an event, and enable the endpoint",
      params: byEvent,
      body: eventBody,
      bodyLimit: EVENT_SAVE_BYTES,
      success: reply.json(
        v.object({ success: v.literal(true), enabled: v.literal(true), event: text, secret: v.optional(text) }),
      ),
      errors: {
        ...changing,
        invalid_webhook_management_request,
        invalid_webhook_event: managementErrors.invalid_webhook_event,
        webhook_tool_unavailable: managementErrors.webhook_tool_unavailable,
      },
    },
    setEnabled: {
      method: "PATCH",
      path: "/api/agents/:id/webhooks",
      summary: "Enable or pause the endpoint",
      params: byId,
      body: v.strictObject({ enabled: v.boolean() }),
      success: reply.json(v.object({ success: v.literal(true), enabled: v.boolean() })),
      errors: {
        ...changing,
        invalid_webhook_management_request,
        webhook_events_required: managementErrors.webhook_events_required,
      },
    },
    deleteEvent: {
      method: "DELETE",
      path: "/api/agents/:id/webhooks/events/:event",
      summary: "Delete an event; deleting the last one pauses the endpoint",
      params: byEvent,
      success: reply.json(v.object({ success: v.literal(true), enabled: v.boolean() })),
      errors: {
        ...changing,
        invalid_webhook_event: managementErrors.invalid_webhook_event,
        webhook_event_not_found: managementErrors.webhook_event_not_found,
      },
    },
    rotateSecret: {
      method: "POST",
      path: "/api/agents/:id/webhooks/secret/rotate",
      summary: "Replace the secret; only this response contains the new one",
      params: byId,
      // 7.3: any body is an error, also one of another media type.
      body: v.optional(v.undefined()),
      faults: {
        ...faults,
        unsupported_media_type: invalid_webhook_management_request,
        body_too_large: invalid_webhook_management_request,
      },
      success: reply.json(v.object({ secret: text })),
      errors: { ...ofAgent, invalid_webhook_management_request },
    },
    scheduleMessages: {
      method: "GET",
      path: "/api/agents/:id/schedule-messages",
      summary: "Read the messages that an agent delivered from the background, newest first",
      params: byId,
      query: v.object({ limit: parameter, offset: parameter }),
      success: reply.json(
        v.object({ items: v.array(scheduleMessage), total: v.number(), limit: v.number(), offset: v.number() }),
      ),
      errors: { ...ofAgent, invalid_webhook_management_request },
    },
    received: {
      method: "GET",
      path: "/api/agents/:id/webhooks/received",
      summary: "List the events that arrived at an agent, and what became of them, newest first",
      params: byId,
      query: readParameters({
        status: v.optional(v.picklist(["accepted", "ignored", "refused"])),
        limit: v.optional(
          v.pipe(text, v.regex(/^[1-9]\d{0,2}$/, "1 to 200"), v.transform(Number), v.maxValue(RECEIVED_LIMIT_MAXIMUM)),
          String(RECEIVED_LIMIT),
        ),
        cursor: v.optional(v.pipe(text, maxCharacters(1024))),
      }),
      success: reply.json(v.object({ items: v.array(receivedEvent), cursor: v.optional(text) })),
      errors: { ...ofAgent, invalid_webhook_management_request },
    },
    senders: {
      method: "GET",
      path: "/api/agents/:id/webhooks/senders",
      summary: "List the senders whose signed notifications an agent takes",
      params: byId,
      query: readParameters({}),
      success: reply.json(
        v.object({
          items: v.array(v.object({ sender: text, kind: senderKind, path: text, events: record(text, text) })),
        }),
      ),
      errors: { ...ofAgent, invalid_webhook_management_request },
    },
    saveSender: {
      method: "PUT",
      path: "/api/agents/:id/webhooks/senders/:sender",
      summary: "Create or replace a sender",
      params: bySender,
      body: v.strictObject({ kind: senderKind, events: senderEvents, secret: v.optional(senderSecret) }),
      bodyLimit: EVENT_SAVE_BYTES,
      success: reply.json(v.object({ success: v.literal(true), sender: text, path: text, secret: v.optional(text) })),
      errors: {
        ...changing,
        ...ofSender,
        invalid_webhook_management_request,
        too_many_webhook_senders: managementErrors.too_many_webhook_senders,
        webhook_event_not_found: managementErrors.webhook_event_not_found,
        webhook_sender_secret_required: managementErrors.webhook_sender_secret_required,
      },
    },
    rotateSenderSecret: {
      method: "POST",
      path: "/api/agents/:id/webhooks/senders/:sender/secret/rotate",
      summary: "Replace a sender's secret; the former one stays valid for a day, unless `keepFormer` is false",
      params: bySender,
      body: v.optional(
        objectOnly(v.strictObject({ secret: v.optional(senderSecret), keepFormer: v.optional(v.boolean(), true) })),
      ),
      success: reply.json(v.object({ success: v.literal(true), secret: v.optional(text) })),
      errors: {
        ...changing,
        ...ofSender,
        invalid_webhook_management_request,
        webhook_sender_not_found: managementErrors.webhook_sender_not_found,
        webhook_sender_secret_required: managementErrors.webhook_sender_secret_required,
      },
    },
    deleteSender: {
      method: "DELETE",
      path: "/api/agents/:id/webhooks/senders/:sender",
      summary: "Delete a sender; its notifications are refused",
      params: bySender,
      success: reply.json(v.object({ success: v.literal(true) })),
      errors: { ...changing, ...ofSender, webhook_sender_not_found: managementErrors.webhook_sender_not_found },
    },
    receive: {
      method: "POST",
      path: "/api/webhook/:agent_id/:sender",
      summary: "Take a notification that its sender signed: GitHub, Slack, Stripe, or Standard Webhooks",
      auth: "agent",
      envelope: triggerEnvelope,
      faults: arrivalFaults,
      params: v.strictObject({ agent_id: text, sender: text }),
      body: jsonObject,
      // The signature covers the text, and is checked before it is parsed.
      bodyAs: "text",
      // GitHub's form has the JSON in its field `payload`.
      accepts: ["application/json", "application/x-www-form-urlencoded"],
      bodyLimit: NOTIFICATION_BYTES,
      success: reply.json(
        v.union([
          v.object({ accepted: v.literal(true), agentId: text, event: text, duplicate: v.optional(v.literal(true)) }),
          v.object({ accepted: v.literal(false), reason: v.literal("not_mapped") }),
          v.object({ challenge: text }),
        ]),
      ),
      errors: notificationErrors,
    },
    trigger: {
      method: "POST",
      path: "/api/webhook/:agent_id",
      summary: "Trigger an event, which the agent processes in the background",
      auth: "agent",
      envelope: triggerEnvelope,
      faults: arrivalFaults,
      params: v.strictObject({ agent_id: text }),
      body: v.strictObject({ event: text, payload: v.optional(jsonObject) }),
      // The secret is checked after the size and before the JSON (open points 5).
      bodyAs: "text",
      bodyLimit: TRIGGER_BYTES,
      success: reply.json(v.object({ accepted: v.literal(true), agentId: text, event: text })),
      errors: triggerErrors,
    },
  },
);
