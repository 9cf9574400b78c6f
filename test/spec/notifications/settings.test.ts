import { createApp, ports } from "@portico/core";
import { type LocalConfig, local, readPlatformOptions } from "@portico/presets/local";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  NOTIFICATION_SECRET,
  type NotificationReceiver,
  startNotificationReceiver,
} from "../../harness/notification-receiver.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
let receiver: NotificationReceiver;
beforeEach(async () => {
  folder = temporaryFolder();
  receiver = await startNotificationReceiver();
});
afterEach(async () => {
  await receiver[Symbol.asyncDispose]();
  folder.remove();
});

const read = (notifications: LocalConfig["notifications"], env = {}) =>
  readPlatformOptions(
    {
      ...{ dataDir: folder.path, log: { level: "silent" }, autoProviders: false, notifications },
      agent: { agentsDir: folder.path, publicUrl: "https://agents.example", console: true },
      workflow: { definitionsDir: folder.path },
    },
    { env },
  );

it("An instance with an address and a key sends notifications with links into its console", async () => {
  const env = { PORTICO_NOTIFICATIONS_URL: receiver.url, PORTICO_NOTIFICATIONS_SECRET: NOTIFICATION_SECRET };
  await using app = await createApp(local(await read({ on: ["run.failed"] }, env)));
  const notifications = app.port(ports.notifications);
  const subject = { id: "run_1", data: { runId: "run_1" }, page: ["runs", "run_1"] };
  await app
    .port(ports.records)
    .batch([...notifications.writes("run.failed", subject), ...notifications.writes("limit.near", { ...subject, id: "near" })]);
  await expect.poll(() => receiver.received.length).toBe(1);
  expect(receiver.received[0]).toMatchObject({
    isSigned: true,
    body: { type: "run.failed", data: { runId: "run_1", url: "https://agents.example/#/runs/run_1" } },
  });
});

it("An instance without an address has no notifications", async () => {
  await using app = await createApp(local(await read({})));
  expect(() => app.port(ports.notifications)).toThrow();
});

it.each([
  ["an address without a key", { url: "https://relay.example" }],
  ["a key without an address", { secret: NOTIFICATION_SECRET }],
  ["another scheme", { url: "ftp://relay.example/KEPT", secret: NOTIFICATION_SECRET }],
  ["a user name", { url: "https://user:KEPT@relay.example", secret: NOTIFICATION_SECRET }],
  ["a key in another form", { url: "https://relay.example", secret: "KEPT-but-too-simple" }],
  ["a short key", { url: "https://relay.example", secret: `whsec_${Buffer.alloc(23).toString("base64")}` }],
])("The settings refuse %s, without a secret in the error", async (_what, notifications) => {
  const error = await read(notifications).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: "ConfigUnusable" });
  expect(String(error)).toContain("notifications");
  expect(String(error)).not.toMatch(/KEPT|whsec_[A-Z]/);
});
