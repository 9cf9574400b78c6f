import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { webhookNotifications } from "@portico/adapters/notifications/webhook";
import { definePlugin, ports, Secret } from "@portico/core";
import { Webhook } from "standardwebhooks";
import * as v from "valibot";

/** The key that receiver and instance share: 32 bytes. */
export const NOTIFICATION_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/** One notification, with the end of its verification by the library of Standard Webhooks. */
export interface ReceivedNotification {
  readonly id: string;
  /** Of the attempt, in seconds since 1970. */
  readonly timestamp: number;
  readonly isSigned: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: any;
}

/** A server that receives notifications. */
export interface NotificationReceiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly ReceivedNotification[];
  /** The notifications of a kind. */
  of(type: string): readonly ReceivedNotification[];
  /** The status of the following answers. Undefined: requests get no answer. Default 204. */
  status: number | undefined;
  /** The adapter that sends to it. */
  adapter(options?: Partial<Parameters<typeof webhookNotifications>[0]>): ReturnType<typeof webhookNotifications>;
}

export async function startNotificationReceiver(): Promise<NotificationReceiver> {
  const received: ReceivedNotification[] = [];
  const library = new Webhook(NOTIFICATION_SECRET);
  const server = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      const text = Buffer.concat(chunks).toString();
      const headers = request.headers as Record<string, string>;
      const { "webhook-id": id = "", "webhook-timestamp": time = "", "webhook-signature": signature } = headers;
      // The clocks of tests are not the time, by which the library refuses old messages.
      const isSigned = library.sign(id, new Date(Number(time) * 1000), text) === signature;
      received.push({ id, timestamp: Number(time), isSigned, headers, text, body: JSON.parse(text) });
      if (receiver.status !== undefined) response.writeHead(receiver.status, { location: "/elsewhere" }).end("x".repeat(100_000));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/operators?token=in-the-address`;
  const receiver: NotificationReceiver = {
    ...{ url, received, status: 204 },
    of: (type) => received.filter(({ body }) => body.type === type),
    adapter: (options = {}) =>
      webhookNotifications({ url: new Secret(url), secret: new Secret(NOTIFICATION_SECRET), ...options }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

/** Counts the looks at the states of an instance, so that tests know when one has ended. */
export function createCountedLooks(kind: ports.NotificationKind) {
  let count = 0;
  const states: ports.NotifiedState[] = [];
  const plugin = definePlugin({
    name: "counted-looks",
    config: v.strictObject({}),
    needs: { notifications: ports.notifications },
    contract: {},
    setup({ notifications }) {
      notifications.define({ name: "counted-looks", kind, look: async () => (count++, [...states]) });
      return {};
    },
  });
  return {
    plugin: plugin({}),
    /** The states that the next looks find. */
    states,
    /** Passes time until a look that begins now has ended. */
    async pass({ advance }: { advance(ms: number): Promise<void> }) {
      // The second one begins only when the first has ended.
      for (const end = count + 3; count < end;) {
        await advance(10_000);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}
