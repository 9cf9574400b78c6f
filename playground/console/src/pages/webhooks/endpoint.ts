import { type CallResult, CallFailed } from "@portico/core/client";
import type { agentWebhookContract } from "@portico/plugins/agent-webhook/contract";
import { describeFailure } from "../../api/describe-failure.ts";

/** An agent's webhook as its owner sees it (specification 2.5). */
export type Endpoint = CallResult<typeof agentWebhookContract.configuration>;
export type WebhookEvent = Endpoint["events"][number];
export type Tool = Endpoint["availableTools"][number];
export type Delivery = CallResult<typeof agentWebhookContract.scheduleMessages>["items"][number];

/** What went wrong with an agent's webhook, and what to do about it. */
export function describeWebhookFailure(error: unknown, agentId: string): string {
  if (!CallFailed.is(error)) return describeFailure(error);
  switch (error.code) {
    case "webhook_configuration_changed":
      return "Somebody changed agent.json in the meantime, and nothing was written. Look at what stands there now, and do it again.";
    case "webhook_configuration_invalid":
      return `The webhooks part of the file agents/${agentId}/agent.json breaks the rules, so nothing can be read or changed here. Mend the file by hand, then try again.`;
    case "webhook_events_required":
      return "An endpoint takes triggers when it has at least one event and a secret. Create an event: the first save makes the secret and enables the endpoint.";
    case "webhook_tool_unavailable":
      return "A tool that was chosen is not available any more. Look at the list of tools again.";
    case "webhook_event_not_found":
      return "This event is not there any more.";
    case "webhook_body_too_large":
      return "The event is larger than the 128 KiB that are taken at once. Shorten the template.";
    case "agent_not_found":
      return `There is no agent “${agentId}”.`;
    default:
      return describeFailure(error);
  }
}
