import { type AuditWriter, type Handlers, ports } from "@portico/core";
import type { AgentWebhookSettings } from "../config.ts";
import type { agentWebhookContract } from "../contract.ts";
import { managementErrors } from "../errors.ts";
import type { agentGuard, ownerGuard } from "../guards.ts";
import type { WebhookDocument } from "../webhook-document.ts";
import type { WebhookSecrets } from "../webhook-secrets.ts";

/** The services that the routes of this area use. */
export interface WebhookServices {
  readonly agents: ports.Agents;
  readonly identity: ports.Identity;
  readonly turns: ports.BackgroundTurns;
  readonly document: WebhookDocument;
  readonly secrets: WebhookSecrets;
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
  { readonly owner: ReturnType<typeof ownerGuard>; readonly agent: ReturnType<typeof agentGuard> }
>;

/** The agent that a path names. Throws `invalid_agent_id`, and `agent_not_found` also for a folder without an `agent.json`. */
export async function managedAgent(agents: ports.Agents, id: string): Promise<ports.Agent> {
  if (!ports.AGENT_ID.test(id)) throw managementErrors.invalid_agent_id();
  const agent = await agents.find(id);
  if (!agent || agent.metadataError === "missing") throw managementErrors.agent_not_found();
  return agent;
}
