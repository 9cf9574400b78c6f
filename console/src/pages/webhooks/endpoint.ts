import { type CallResult, CallFailed } from "@portico/core/client";
import { SENDERS } from "@portico/plugins/agent-webhook/client";
import type { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";
import { describeFailure } from "../../api/describe-failure.ts";

/** An agent's webhook as its owner sees it (specification 2.5). */
export type Endpoint = CallResult<typeof agentWebhookContract.configuration>;
export type WebhookEvent = Endpoint["events"][number];
export type Tool = Endpoint["availableTools"][number];
export type Delivery = CallResult<typeof agentWebhookContract.scheduleMessages>["items"][number];

/** A problem with an agent's webhook, and how to fix it. */
export function describeWebhookFailure(error: unknown, agentId: string): string {
  if (!CallFailed.is(error)) return describeFailure(error);
  switch (error.code) {
    case "webhook_configuration_changed":
      return "agent.json was changed in the meantime, so nothing was written. Check its current content, and try again.";
    case "webhook_configuration_invalid":
      return `The webhooks part of the file agents/${agentId}/agent.json is invalid, so nothing can be read or changed here. Correct the file by hand, then try again.`;
    case "webhook_events_required":
      return "An endpoint needs at least one event and a secret to accept triggers. Create an event: the first save creates the secret and enables the endpoint.";
    case "webhook_tool_unavailable":
      return "A selected tool is no longer available. Check the list of tools.";
    case "webhook_event_not_found":
      return "This event no longer exists.";
    case "webhook_sender_not_found":
      return "This sender no longer exists.";
    case "webhook_sender_secret_required":
      return "This sender makes its secret itself: copy it from there.";
    case "too_many_webhook_senders":
      return `An agent has at most ${SENDERS} senders. Delete one that is not used.`;
    case "webhook_body_too_large":
      return "The event is larger than the limit of 128 KiB. Shorten the template.";
    case "agent_not_found":
      return `The agent “${agentId}” does not exist.`;
    default:
      return describeFailure(error);
  }
}
