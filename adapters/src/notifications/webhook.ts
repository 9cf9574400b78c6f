import { defineAdapter, isStoreAway, ports, type Secret } from "@portico/core";
import { createPatientFetch } from "../outbound/patient-fetch.ts";
import type { OutboundOptions } from "../outbound/outbound-options.ts";
import { createOutbox, type Outcomes } from "./webhook/outbox.ts";
import { sendMessage } from "./send-message.ts";
import { createToldStates, digestOf } from "./webhook/told-states.ts";

/** Options of `webhookNotifications`. */
export interface WebhookNotificationsOptions extends Partial<Omit<ports.NotificationThresholds, "decisionMs">> {
  /** Where messages are sent. It may name a private host: an administrator wrote it. */
  readonly url: Secret;
  /** The key of the signatures: `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: Secret;
  /** What is told. Default: everything. */
  readonly on?: readonly ports.NotificationKind[] | undefined;
  /** Default: 10. */
  readonly decisionMinutes?: number | undefined;
  /** Where people find the console. Default: messages have no links. */
  readonly consoleUrl?: string | undefined;
  /** A proxy, and authorities. Default: direct connections, and the authorities of Node.js. */
  readonly outbound?: OutboundOptions | undefined;
}

/** How often waiting messages are looked at, and states. */
const [SEND_MS, LOOK_MS] = [5_000, 30_000];
const MINUTE_MS = 60_000;

/**
 * Notifications as requests that are signed as Standard Webhooks says (https://www.standardwebhooks.com). They wait in the records until the
 * receiver has them: each arrives at least once, always with the same `webhook-id`. One process at a time looks and sends, in chores of the engine.
 */
export const webhookNotifications = defineAdapter({
  name: "notifications/webhook",
  port: ports.notifications,
  needs: { records: ports.records, engine: ports.engine, clock: ports.clock, telemetry: ports.telemetry },
  open({ records, engine, clock, telemetry }, options: WebhookNotificationsOptions, scope): ports.Notifications {
    const { url, secret, consoleUrl, scheduleFailures = 3, decisionMinutes = 10, limitShare = 0.8 } = options;
    const kinds = new Set<ports.NotificationKind>(options.on ?? ports.NOTIFICATION_KINDS);
    const thresholds = { scheduleFailures, decisionMs: decisionMinutes * MINUTE_MS, limitShare };
    const connections = createPatientFetch(options.outbound);
    scope.onClose(() => connections.close());
    const outbox = createOutbox({ records, clock });
    const states = createToldStates({ records, clock });
    const sources = new Map<string, ports.NotificationSource>();
    const outcomes = countOutcomes(telemetry, (close) => scope.onClose(close));

    const write = (id: string, kind: ports.NotificationKind, { data, page }: ports.NotifiedSubject): ports.Write => {
      const hash = `#/${page.map(encodeURIComponent).join("/")}`;
      const link = consoleUrl !== undefined && { url: new URL(hash, consoleUrl).href };
      const timestamp = new Date(clock.now()).toISOString();
      return outbox.write(`msg_${id}`, JSON.stringify({ type: kind, timestamp, data: { ...data, ...link } }));
    };

    const look = async (signal: AbortSignal): Promise<void> => {
      for (const source of sources.values()) {
        try {
          const found = await source.look(thresholds, signal);
          await states.compare(source.name, found, (id, state) => write(id, source.kind, state));
        } catch (error) {
          signal.throwIfAborted();
          // The next look repeats it.
          if (!isStoreAway(error)) telemetry.log.warn("States for notifications cannot be read", { source: source.name }, error);
        }
      }
      await outbox.bound(outcomes, signal);
    };
    const deliver = (signal: AbortSignal) =>
      outbox.deliver((message) => sendMessage({ url, secret, clock, connections }, message, signal), outcomes, signal);

    engine.chore("look-for-notifications", { everyMs: LOOK_MS, firstMs: LOOK_MS }, look);
    engine.chore("send-notifications", { everyMs: SEND_MS, firstMs: SEND_MS }, deliver);
    scope.onReady(() => engine.ready());
    return {
      define(source) {
        if (sources.has(source.name)) throw new TypeError(`The source ${source.name} of notifications is defined twice`);
        if (kinds.has(source.kind)) sources.set(source.name, source);
      },
      writes: (kind, subject) => (kinds.has(kind) ? [write(digestOf(kind, subject.id), kind, subject)] : []),
    };
  },
});

/** Counts what came of messages, and logs when deliveries begin to fail, when they succeed again, and what is given up. */
function countOutcomes({ log, gauge }: ports.Telemetry, onClose: (close: () => void) => void): Outcomes {
  const counts = { delivered: 0, failed: 0, given_up: 0 };
  let isFailing = false;
  onClose(
    gauge({
      name: "portico_notifications",
      help: "Attempts of this process to deliver notifications, by outcome: delivered, failed or given_up.",
      isCount: true,
      read: () => Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
    }),
  );
  return {
    delivered() {
      counts.delivered++;
      if (isFailing) log.info("Notifications are delivered again");
      isFailing = false;
    },
    failed(code) {
      counts.failed++;
      if (!isFailing) log.warn("A notification could not be delivered, and will be sent again", { code });
      isFailing = true;
    },
    givenUp(count, code) {
      counts.given_up += count;
      log.warn("Notifications were given up", { count, code });
    },
  };
}
