import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { webhookNotifications } from "@portico/adapters/notifications/webhook";
import { signingKey } from "@portico/adapters/notifications/notification-options";
import { createManualClock } from "@portico/adapters/clock/manual";
import { createApp, ports, Secret } from "@portico/core";
import { testing } from "@portico/presets/testing";
import { expect, it } from "vitest";
import { startHookServer } from "../../harness/hook-server.ts";
import { NOTIFICATION_SECRET } from "../../harness/notification-receiver.ts";
import { freePort } from "../../harness/ports.ts";
import { readPage } from "../docs/pages.ts";

const { blocks } = await readPage("docs/notifications.md");
const blockOf = (wanted: string) => blocks.find(({ language }) => language === wanted)!.text;

it("The command of docs/notifications.md makes a key", async () => {
  const { stdout } = await promisify(execFile)("sh", ["-c", blockOf("sh")]);
  expect(signingKey(stdout.trim())?.length).toBe(32);
});

it("The relay of docs/notifications.md verifies a notification, and writes to Slack", async () => {
  await using slack = await startHookServer();
  slack.status = 200;
  const port = await freePort();
  // From this folder, so that it finds the library.
  const relay = spawn(process.execPath, ["--input-type=module", "-e", blockOf("js")], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: { PATH: process.env["PATH"], NOTIFICATIONS_SECRET: NOTIFICATION_SECRET, SLACK_URL: slack.url, PORT: String(port) },
    stdio: "inherit",
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    const unsigned = () =>
      fetch(url, { method: "POST", body: "{}" }).then(
        ({ status }) => status,
        () => undefined,
      );
    await expect.poll(unsigned).toBe(401);
    const clock = createManualClock({ startAt: new Date().toISOString() });
    await using app = await createApp({
      name: "relayed",
      extends: testing({ clock }),
      adapters: [
        webhookNotifications({
          ...{ url: new Secret(url), secret: new Secret(NOTIFICATION_SECRET), consoleUrl: "https://agents.example/" },
        }),
      ],
    });
    const subject = { id: "run_1", data: { agentId: "helper", runId: "run_1" }, page: ["runs", "run_1"] };
    await app.port(ports.records).batch(app.port(ports.notifications).writes("run.failed", subject));
    await clock.advance(5000);
    await expect
      .poll(() => slack.received.map(({ body }) => body))
      .toEqual([{ text: "run.failed: helper https://agents.example/#/runs/run_1" }]);
  } finally {
    relay.kill();
    await once(relay, "close");
  }
});
