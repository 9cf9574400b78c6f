import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { defineAdapter, ports } from "@portico/core";
import { startNotificationReceiver } from "../harness/notification-receiver.ts";
import { notificationsConformance } from "./notifications.ts";

notificationsConformance("webhook", async () => {
  const receiver = await startNotificationReceiver();
  const clock = createManualClock();
  const { records, close } = createMemoryRecords();
  const shared = defineAdapter({ name: "records/shared", port: ports.records, needs: {}, open: () => records });
  return {
    adapter: receiver.adapter(),
    others: [shared(), memoryEngine({}), manualClock({ clock }), memoryTelemetry({})],
    records,
    pass: () => clock.advance(10_000),
    told: () => receiver.received.map(({ body: { type, data } }) => ({ kind: type, data })),
    async close() {
      close();
      await receiver[Symbol.asyncDispose]();
    },
  };
});
