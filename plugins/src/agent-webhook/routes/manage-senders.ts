import { auditActor, ports, Secret } from "@portico/core";
import { managementErrors } from "../errors.ts";
import { SENDERS } from "../limits.ts";
import { isSenderName, isSenderSecret, makesItsSecret, type SenderKind } from "../senders/sender-rules.ts";
import { toConfigurationError } from "./management.ts";
import { managedAgent, type WebhookHandlers, type WebhookServices } from "./webhook-services.ts";

/** Lists the senders of an agent, without their secrets. */
export function listSenders({ agents, senders }: WebhookServices): WebhookHandlers["senders"] {
  return async ({ params: { id } }) => {
    await managedAgent(agents, id);
    const items = await senders.list(id, SENDERS);
    return {
      items: items.map(({ sender, kind, events }) => ({
        ...{ sender, kind, path: pathOf(id, sender) },
        events: Object.fromEntries(events),
      })),
    };
  };
}

/** Creates or replaces a sender. A secret that this call makes is in its answer only. */
export function saveSender(services: WebhookServices): WebhookHandlers["saveSender"] {
  const { agents, document, senders } = services;
  return async ({ params: { id, sender }, body: { kind, events, secret: given }, who, head, fail }) => {
    await managedAgent(agents, id);
    if (!isSenderName(sender)) throw fail.invalid_webhook_sender();
    const { events: own } = await document.read(id).catch((error: unknown) => Promise.reject(toConfigurationError(error)));
    const missing = [...new Set(Object.values(events))].filter((name) => !own.has(name));
    if (missing.length > 0) throw fail.webhook_event_not_found(undefined, { events: missing });
    const others = await senders.list(id, SENDERS);
    if (others.length >= SENDERS && !others.some((each) => each.sender === sender)) throw fail.too_many_webhook_senders();
    const secret = given === undefined ? undefined : givenSecret(kind, given);
    const make = () => makeSecret(services, kind);
    const order = { kind, events: new Map(Object.entries(events)), secret, make, by: auditActor(who, head) };
    const saved = await unchanged(senders.save(id, sender, order));
    if (saved === "no-secret") throw fail.webhook_sender_secret_required();
    const { made } = saved;
    return { success: true, sender, path: pathOf(id, sender), ...(made && { secret: made.reveal() }) } as const;
  };
}

/** Replaces the secret of a sender. */
export function rotateSenderSecret(services: WebhookServices): WebhookHandlers["rotateSenderSecret"] {
  const { agents, senders } = services;
  return async ({ params: { id, sender }, body, who, head, fail }) => {
    await managedAgent(agents, id);
    if (!isSenderName(sender)) throw fail.invalid_webhook_sender();
    const known = await senders.find(id, sender);
    if (!known) throw fail.webhook_sender_not_found();
    const { secret: given, keepFormer = true } = body ?? {};
    const made = given === undefined ? makeSecret(services, known.kind) : undefined;
    const secret = given === undefined ? made : givenSecret(known.kind, given);
    if (!secret) throw fail.webhook_sender_secret_required();
    const order = { secret, keepFormer, by: auditActor(who, head) };
    if (!(await unchanged(senders.rotate(id, sender, order)))) throw fail.webhook_sender_not_found();
    return { success: true, ...(made && { secret: made.reveal() }) } as const;
  };
}

/** Deletes a sender and its secrets. */
export function deleteSender({ agents, senders }: WebhookServices): WebhookHandlers["deleteSender"] {
  return async ({ params: { id, sender }, who, head, fail }) => {
    await managedAgent(agents, id);
    if (!isSenderName(sender)) throw fail.invalid_webhook_sender();
    if (!(await unchanged(senders.remove(id, sender, auditActor(who, head))))) throw fail.webhook_sender_not_found();
    return { success: true } as const;
  };
}

/** Undefined if the vendor makes it. */
function makeSecret({ createSecret }: WebhookServices, kind: SenderKind): Secret | undefined {
  if (makesItsSecret(kind)) return undefined;
  const secret = createSecret();
  // Standard Webhooks has 24 to 64 bytes in Base64.
  return kind === "standard" ? new Secret(`whsec_${Buffer.from(secret.reveal(), "base64url").toString("base64")}`) : secret;
}

function givenSecret(kind: SenderKind, secret: string): Secret {
  if (isSenderSecret(kind, secret)) return new Secret(secret);
  throw managementErrors.invalid_webhook_management_request(undefined, { secret: "expected Base64 after `whsec_`" });
}

async function unchanged<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (error instanceof ports.RecordConflict) throw managementErrors.webhook_configuration_changed(undefined, {}, error);
    throw error;
  }
}

function pathOf(agentId: string, sender: string): string {
  return `/api/webhook/${agentId}/${sender}`;
}
