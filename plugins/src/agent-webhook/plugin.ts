import { auditWriter, definePlugin, latestEnd, optional, ownerScheme, ports } from "@portico/core";
import { agentWebhookConfig } from "./config.ts";
import { agentWebhookContract } from "./contract.ts";
import { deleteSender, listSenders, rotateSenderSecret, saveSender } from "./routes/manage-senders.ts";
import { deleteEvent, readConfiguration, rotateSecret, saveEvent, setEnabled } from "./routes/management.ts";
import { createReceivedEvents } from "./received/received-events.ts";
import { receive } from "./routes/receive.ts";
import { listReceived } from "./routes/received.ts";
import { scheduleMessages } from "./routes/schedule-messages.ts";
import { trigger } from "./routes/trigger.ts";
import { agentGuard, managementGuard, type WebhookServices } from "./routes/webhook-services.ts";
import { createSenderRecords } from "./senders/sender-records.ts";
import { createWebhookDocument } from "./webhook-document.ts";
import { createWebhookSecrets } from "./webhook-secrets.ts";

/** Which source of documents has the agents. */
const SOURCE = "agents";

/** The instance key changes at a start. In a cluster, processes with the earlier key may still seal after it. */
const SEALED_AGAIN: ports.ChoreOptions = { everyMs: 60 * 60_000, firstMs: 60_000 };

const SWEPT: ports.ChoreOptions = { everyMs: 60 * 60_000, firstMs: 60_000 };

/** Events from outside that agents work on in the background, and their management by the instance's owner (specification 4.3 and 4.4). */
export const agentWebhook = definePlugin({
  name: "agent-webhook",
  summary: "Events from external systems that agents process in the background, and the configuration of these events.",
  config: agentWebhookConfig,
  needs: {
    agents: ports.agents,
    documents: ports.documents,
    records: ports.records,
    secrets: ports.secrets,
    sealing: ports.sealing,
    identity: ports.identity,
    engine: ports.engine,
    clock: ports.clock,
    turns: ports.backgroundTurns,
    audit: optional(ports.audit),
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
  },
  contract: agentWebhookContract,
  security: { owner: ownerScheme },
  // 4.3: without the management, configured webhooks still work.
  capabilities: ({ management }) => (management ? ["webhookManagement"] : []),
  guards: ({ identity, agents }, settings) => ({ owner: managementGuard(identity, settings), agent: agentGuard(agents) }),
  setup(given, { mode, sessionIssuesMs: mostMs }, scope) {
    const { agents, identity, clock, engine, turns, telemetry, usage } = given;
    const documents = given.documents.find(({ id }) => id === SOURCE);
    if (!documents) throw new TypeError(`No source of documents is called ${SOURCE}`);
    const audit = auditWriter(given.audit, given.records);
    const secrets = createWebhookSecrets({ ...given, audit });
    const document = createWebhookDocument({ documents });
    const latestEndOf = (caller: ports.Caller) => latestEnd(caller, { now: clock.now(), mostMs });
    const senders = createSenderRecords({ ...given, audit });
    engine.chore("seal-webhook-senders", SEALED_AGAIN, senders.sealAgain);
    const received = createReceivedEvents({ ...given, log: telemetry.log }, scope);
    engine.chore("sweep-webhook-received", SWEPT, received.sweep);
    scope.onReady(() => engine.ready());
    const services: WebhookServices = {
      ...{ agents, identity, clock, turns, document, secrets, audit, telemetry, usage, mode, latestEndOf },
      ...{ senders, received },
      createSecret: () => given.secrets.create(""),
    };
    return {
      configuration: readConfiguration(services),
      saveEvent: saveEvent(services),
      setEnabled: setEnabled(services),
      deleteEvent: deleteEvent(services),
      rotateSecret: rotateSecret(services),
      scheduleMessages: scheduleMessages(services),
      received: listReceived(services),
      senders: listSenders(services),
      saveSender: saveSender(services),
      rotateSenderSecret: rotateSenderSecret(services),
      deleteSender: deleteSender(services),
      receive: receive(services),
      trigger: trigger(services),
    };
  },
});
