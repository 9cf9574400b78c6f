import { type AuditWriter, type Guard, type Handlers, ownerGuard, ports, type Secret } from "@portico/core";
import type { AgentWebhookSettings } from "../config.ts";
import type { agentWebhookContract } from "../contract.ts";
import { arrivalErrors, managementErrors } from "../errors.ts";
import type { ReceivedEvents } from "../received/received-events.ts";
import type { SenderRecords } from "../senders/sender-records.ts";
import type { WebhookDocument } from "../webhook-document.ts";
import type { WebhookSecrets } from "../webhook-secrets.ts";

/** The services that the routes of this area use. */
export interface WebhookServices {
  readonly agents: ports.Agents;
  readonly identity: ports.Identity;
  readonly turns: ports.BackgroundTurns;
  readonly document: WebhookDocument;
  readonly secrets: WebhookSecrets;
  readonly senders: SenderRecords;
  readonly received: ReceivedEvents;
  readonly clock: ports.Clock;
  /** Makes the secrets of senders that take any. */
  readonly createSecret: () => Secret;
  readonly audit: AuditWriter;
  readonly telemetry: ports.Telemetry;
  readonly usage: ports.Usage | undefined;
  readonly mode: AgentWebhookSettings["mode"];
  /** When a secret ends at the latest that a caller makes now. */
  readonly latestEndOf: (caller: ports.Caller) => number | undefined;
}

/** The handlers of this area, by route. */
export type WebhookHandlers = Handlers<
  typeof agentWebhookContract,
  { readonly owner: ReturnType<typeof managementGuard>; readonly agent: ReturnType<typeof agentGuard> }
>;

/** Admits the instance's owner, if webhooks can be managed (specification 4.3). */
export function managementGuard(
  identity: ports.Identity,
  { management }: AgentWebhookSettings,
): Guard<Promise<ports.Caller & { readonly userId: string }>> {
  const { unauthorized, webhook_owner_required, webhook_management_unavailable } = managementErrors;
  const admit = ownerGuard(identity, { unauthorized, owner_required: webhook_owner_required });
  return async (head, signal) => {
    const caller = await admit(head, signal);
    const { userId } = caller;
    if (userId === undefined) throw webhook_owner_required();
    if (!management) throw webhook_management_unavailable();
    return { ...caller, userId };
  };
}

/** A trigger checks the agent first. It checks the credential after it has received the body (open points 5: the order of the checks). */
export function agentGuard(agents: ports.Agents): Guard<Promise<ports.Agent>> {
  return async ({ params }) => {
    const agent = await agents.find(params["agent_id"] ?? "");
    if (!agent) throw arrivalErrors.agent_not_found();
    return agent;
  };
}

/** The agent that a path names. Throws `invalid_agent_id`, and `agent_not_found` also for a folder without an `agent.json`. */
export async function managedAgent(agents: ports.Agents, id: string): Promise<ports.Agent> {
  if (!ports.AGENT_ID.test(id)) throw managementErrors.invalid_agent_id();
  const agent = await agents.find(id);
  if (!agent || agent.metadataError === "missing") throw managementErrors.agent_not_found();
  return agent;
}
