import { defineErrors } from "@portico/core/contract";

/** Errors of management (specification 7.3). */
export const managementErrors = defineErrors({
  invalid_webhook_management_request: { status: 400 },
  invalid_webhook_event: { status: 400 },
  webhook_tool_unavailable: { status: 400 },
  webhook_events_required: { status: 400 },
  invalid_webhook_sender: { status: 400 },
  webhook_sender_secret_required: { status: 400 },
  too_many_webhook_senders: { status: 400 },
  invalid_agent_id: { status: 400 },
  unauthorized: { status: 401 },
  webhook_owner_required: { status: 403 },
  // 9.5: the capability in the handshake announces this.
  webhook_management_unavailable: { status: 403 },
  origin_not_allowed: { status: 403 },
  agent_not_found: { status: 404 },
  webhook_event_not_found: { status: 404 },
  webhook_sender_not_found: { status: 404 },
  webhook_configuration_changed: { status: 409 },
  webhook_configuration_invalid: { status: 409 },
  webhook_body_too_large: { status: 413 },
  webhook_management_failed: { status: 500 },
});

/** Errors of events from outside, whichever way they come (specification 7.4). The sender receives the message. */
export const arrivalErrors = defineErrors({
  invalid_request: { status: 400, message: "Invalid request body" },
  invalid_json: { status: 400, message: "Invalid JSON" },
  unknown_event: { status: 400 },
  origin_not_allowed: { status: 403, message: "origin_not_allowed" },
  agent_not_found: { status: 404, message: "Agent not found" },
  webhook_not_enabled: { status: 404, message: "Webhook not enabled for this agent" },
  body_too_large: { status: 413, message: "Request body too large" },
  unsupported_media_type: { status: 415, message: "Unsupported media type" },
  agent_json_broken: { status: 500, message: "Failed to parse agent.json" },
  // The event was not accepted, or it is unknown whether it was accepted. The sender should retry.
  not_accepted: { status: 503, message: "The event could not be accepted: send it again later" },
});

/** Errors of triggers. */
export const triggerErrors = {
  ...arrivalErrors,
  ...defineErrors({
    invalid_webhook_secret: { status: 401, message: "Invalid webhook secret" },
    invalid_embedded_token: { status: 401, message: "Invalid embedded instance token" },
    webhook_secret_required: { status: 403, message: "webhook_secret_required" },
  }),
};

/** Errors of signed notifications. */
export const notificationErrors = {
  ...arrivalErrors,
  ...defineErrors({
    event_not_named: { status: 400, message: "The notification does not name its event" },
    invalid_signature: { status: 401, message: "The signature is missing or wrong" },
    timestamp_outside_tolerance: { status: 401, message: "The signed time is more than 5 minutes from this server's clock" },
    sender_not_found: { status: 404, message: "Sender not found" },
    sender_secret_unreadable: { status: 500, message: "The sender's secret cannot be read: it must be set again" },
  }),
};
