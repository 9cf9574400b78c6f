import { defineContract, jsonObject, reply } from "@portico/core/contract";
import * as v from "valibot";
import { managementEnvelope, triggerEnvelope } from "./envelope.ts";
import { managementErrors, triggerErrors } from "./errors.ts";
import { EVENT_SAVE_BYTES, TRIGGER_BYTES } from "./limits.ts";
import { eventBody } from "./webhook-configuration.ts";

const text = v.string();
const byId = v.strictObject({ id: text });
const byEvent = v.strictObject({ id: text, event: text });
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

/** Management of events, secret and deliveries for the owner, and the trigger for external senders (specification 4.3 and 4.4). */
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
    trigger: {
      method: "POST",
      path: "/api/webhook/:agent_id",
      summary: "Trigger an event, which the agent processes in the background",
      auth: "agent",
      envelope: triggerEnvelope,
      faults: {
        invalid_request: triggerErrors.invalid_request,
        invalid_json: triggerErrors.invalid_json,
        body_too_large: triggerErrors.body_too_large,
        unsupported_media_type: triggerErrors.unsupported_media_type,
        origin_not_allowed: triggerErrors.origin_not_allowed,
      },
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
