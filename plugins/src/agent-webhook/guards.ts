import { callerOf, type Guard, type ports } from "@portico/core";
import type { AgentWebhookSettings } from "./config.ts";
import { managementErrors, triggerErrors } from "./errors.ts";

/** Admits the instance's owner, if webhooks can be managed (specification 4.3). */
export function ownerGuard(
  identity: ports.Identity,
  { management }: AgentWebhookSettings,
): Guard<Promise<ports.Caller & { readonly userId: string }>> {
  return async (head, signal) => {
    const caller = await callerOf(head, identity, signal);
    if (!caller) throw managementErrors.unauthorized();
    const { role, userId } = caller;
    if (role !== "owner" || userId === undefined) throw managementErrors.webhook_owner_required();
    if (!management) throw managementErrors.webhook_management_unavailable();
    return { ...caller, userId };
  };
}

/** A trigger checks the agent first. It checks the credential after it has received the body (open points 5: the order of the checks). */
export function agentGuard(agents: ports.Agents): Guard<Promise<ports.Agent>> {
  return async ({ params }) => {
    const agent = await agents.find(params["agent_id"] ?? "");
    if (!agent) throw triggerErrors.agent_not_found();
    return agent;
  };
}
