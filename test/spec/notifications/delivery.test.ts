import { join } from "node:path";
import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type Adapter, createApp, defineAdapter, ports } from "@portico/core";
import { testing } from "@portico/presets/testing";
import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createCountedLooks,
  NOTIFICATION_SECRET,
  type NotificationReceiver,
  startNotificationReceiver,
} from "../../harness/notification-receiver.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const event = (id: string) => ({ id, data: { runId: id }, page: ["runs", id] });

let receiver: NotificationReceiver;
let clock: ManualClock;
let telemetry: MemoryTelemetry;
let looks: ReturnType<typeof createCountedLooks>;
const open: AsyncDisposable[] = [];

beforeEach(async () => {
  receiver = await startNotificationReceiver();
  clock = createManualClock({ startAt: new Date().toISOString() });
  telemetry = createMemoryTelemetry();
  looks = createCountedLooks("schedule.failing");
});
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

const start = async (
  options: Parameters<NotificationReceiver["adapter"]>[0] = {},
  {
    adapters = [],
    plugins = [looks.plugin],
  }: { readonly adapters?: readonly Adapter[]; readonly plugins?: readonly (typeof looks.plugin)[] } = {},
) => {
  const app = await createApp({
    name: "notifying",
    extends: testing({ clock, telemetry }),
    adapters: [receiver.adapter(options), ...adapters],
    plugins,
  });
  open.push(app);
  const notifications = app.port(ports.notifications);
  return {
    app,
    /** Something happens, in a commit. */
    happen: (id: string, kind: ports.NotificationKind = "run.failed") =>
      app.port(ports.records).batch(notifications.writes(kind, event(id))),
  };
};
/** Passes time in small steps until this many notifications have arrived. */
const arrived = (count: number) =>
  expect
    .poll(async () => {
      if (receiver.received.length < count) await clock.advance(5000);
      return receiver.received.length;
    })
    .toBe(count);
const counts = async (): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries(
    (await telemetry.readGauges())["portico_notifications"]!.map(({ labels, value }) => [labels["outcome"], value]),
  );

describe("a notification", () => {
  it("is a request that the library of Standard Webhooks accepts", async () => {
    const { happen } = await start();
    await happen("run_1");
    await arrived(1);
    const [{ headers, text, id }] = receiver.received as [NotificationReceiver["received"][number]];
    expect(new Webhook(NOTIFICATION_SECRET).verify(text, headers)).toMatchObject({
      type: "run.failed",
      data: { runId: "run_1" },
    });
    expect(id).toMatch(/^msg_[\w-]{32}$/);
    expect(headers["content-type"]).toBe("application/json");
  });

  it("has a link into the console only if its address is known", async () => {
    const { happen } = await start({ consoleUrl: "https://agents.example/portico/" });
    await happen("a run/ü");
    await arrived(1);
    expect(receiver.received[0]!.body.data.url).toBe("https://agents.example/portico/#/runs/a%20run%2F%C3%BC");
    const other = await start();
    await other.happen("run_2");
    await arrived(2);
    expect(receiver.received[1]!.body.data).toEqual({ runId: "run_2" });
  });

  it("is sent again with the same id and a new signature until the receiver accepts it", async () => {
    const { happen } = await start();
    receiver.status = 500;
    await happen("run_1");
    await arrived(2);
    receiver.status = 302;
    await arrived(3);
    receiver.status = 200;
    await arrived(4);
    await looks.pass(clock);
    expect(receiver.received.map(({ isSigned }) => isSigned)).toEqual([true, true, true, true]);
    expect(new Set(receiver.received.map(({ id, text }) => id + text)).size).toBe(1);
    expect(new Set(receiver.received.map(({ timestamp }) => timestamp)).size).toBe(4);
    expect(await counts()).toEqual({ delivered: 1, failed: 3, given_up: 0 });
  });

  it("is given up after nine attempts within about a day, and the log and the metrics say so", async () => {
    const { happen } = await start();
    receiver.status = 503;
    await happen("run_1");
    for (let attempt = 1; attempt <= 9; attempt++) {
      await expect
        .poll(async () => {
          if (receiver.received.length < attempt) await clock.jump(HOUR_MS);
          return receiver.received.length;
        })
        .toBe(attempt);
      await expect.poll(async () => Object.values(await counts()).reduce((sum, value) => sum + value, 0)).toBe(attempt);
    }
    expect(await counts()).toEqual({ delivered: 0, failed: 8, given_up: 1 });
    expect(telemetry.lines.filter(({ level }) => level === "warn")).toMatchObject([
      { message: "A notification could not be delivered, and will be sent again", fields: { code: "503" } },
      { message: "Notifications were given up", fields: { count: 1, code: "503" } },
    ]);
    await looks.pass(clock);
    expect(receiver.received.length).toBe(9);
  });

  it("is given up at once if the receiver answers 410", async () => {
    const { happen } = await start();
    receiver.status = 410;
    await happen("run_1");
    await arrived(1);
    await expect.poll(counts).toEqual({ delivered: 0, failed: 0, given_up: 1 });
  });

  it("fails at a receiver that does not answer within 15 s, and at one that cannot be reached", async () => {
    const { happen } = await start();
    receiver.status = undefined;
    await happen("run_1");
    await arrived(1);
    await clock.advance(15_000);
    await expect.poll(counts).toMatchObject({ failed: 1 });
    const { port } = new URL(receiver.url);
    await receiver[Symbol.asyncDispose]();
    await expect
      .poll(async () => {
        if ((await counts())["failed"]! < 2) await clock.advance(5000);
        return (await counts())["failed"];
      })
      .toBe(2);
    expect(telemetry.lines.map(({ fields }) => fields["code"])).toContain("timeout");
    expect(JSON.stringify(telemetry.lines)).not.toContain(port);
    receiver = await startNotificationReceiver();
  });

  it("never puts the address or the key into the log", async () => {
    const { happen } = await start();
    receiver.status = 400;
    await happen("run_1");
    await arrived(1);
    await expect.poll(() => telemetry.lines.length).toBeGreaterThan(0);
    const written = JSON.stringify(telemetry.lines);
    for (const secret of ["in-the-address", "127.0.0.1", NOTIFICATION_SECRET]) expect(written).not.toContain(secret);
  });

  it("of a kind that is switched off is not written", async () => {
    const { happen, app } = await start({ on: ["run.failed"] });
    expect(app.port(ports.notifications).writes("limit.near", event("near"))).toEqual([]);
    await happen("near", "limit.near");
    await happen("run_1");
    await arrived(1);
    expect(receiver.received[0]!.body.type).toBe("run.failed");
  });

  it("is given up if 1000 newer ones wait", async () => {
    const { app } = await start();
    receiver.status = 500;
    const notifications = app.port(ports.notifications);
    for (let id = 0; id < 1010; id++) {
      await app.port(ports.records).batch(notifications.writes("run.failed", event(`run_${id}`)));
      if (id === 9) await clock.advance(1);
    }
    await clock.advance(30_000);
    await expect.poll(counts).toMatchObject({ given_up: 10 });
    // A message that is given up may be on its way.
    await expect.poll(async () => (await counts())["failed"] === receiver.received.length).toBe(true);
    const before = receiver.received.length;
    receiver.status = 204;
    await expect.poll(async () => (await clock.advance(5000), (await counts())["delivered"])).toBe(1000);
    const delivered = new Set(receiver.received.slice(before).map(({ body }) => body.data.runId));
    expect([delivered.size, delivered.has("run_9"), delivered.has("run_10")]).toEqual([1000, false, true]);
  });
});

describe("a state", () => {
  it("is told once while it lasts, and again when it has ended and begins again", async () => {
    await start();
    looks.states.push(event("daily"));
    await arrived(1);
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
    looks.states.splice(0);
    await looks.pass(clock);
    looks.states.push(event("daily"));
    await arrived(2);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(2);
  });

  it("with an end is told once until then, also if looks in between do not find it", async () => {
    await start();
    const onceUntil = clock.now() + HOUR_MS;
    looks.states.push({ ...event("today"), onceUntil });
    await arrived(1);
    looks.states.splice(0);
    await looks.pass(clock);
    looks.states.push({ ...event("today"), onceUntil });
    await looks.pass(clock);
    expect(receiver.received.length).toBe(1);
    looks.states.splice(0);
    await clock.jump(HOUR_MS);
    await looks.pass(clock);
    looks.states.push({ ...event("today"), onceUntil: onceUntil + 24 * HOUR_MS });
    await arrived(2);
  });
});

describe("processes", () => {
  it("that stop between writing and sending send after the next start, and tell no state twice", async () => {
    const folder = temporaryFolder();
    open.push({ [Symbol.asyncDispose]: async () => folder.remove() });
    const stores = () => [
      sqliteRecords({ path: join(folder.path, "records.sqlite") }),
      sqliteLog({}),
      embeddedEngine({}),
      manualClock({ clock }),
      memoryTelemetry({ telemetry }),
    ];
    receiver.status = 500;
    looks.states.push(event("daily"));
    const first = await start({}, { adapters: stores() });
    await first.happen("run_1");
    await arrived(2);
    await first.app.close();
    receiver.status = 204;
    looks = createCountedLooks("schedule.failing");
    looks.states.push(event("daily"));
    await start({}, { adapters: stores(), plugins: [looks.plugin] });
    await looks.pass(clock);
    await expect.poll(() => receiver.received.length).toBeGreaterThanOrEqual(4);
    await looks.pass(clock);
    const ids = (type: string) => new Set(receiver.of(type).map(({ id }) => id)).size;
    expect([ids("run.failed"), ids("schedule.failing")]).toEqual([1, 1]);
  });

  it("that share a store and look at the same time tell a state with one id", async () => {
    const { records, close } = createMemoryRecords();
    open.push({ [Symbol.asyncDispose]: async () => close() });
    const shared = defineAdapter({ name: "records/shared", port: ports.records, needs: {}, open: () => records });
    looks.states.push(event("daily"));
    const others = createCountedLooks("schedule.failing");
    others.states.push(event("daily"));
    await start({}, { adapters: [shared()] });
    await start({}, { adapters: [shared()], plugins: [others.plugin] });
    await looks.pass(clock);
    await others.pass(clock);
    expect(receiver.received.length).toBeGreaterThan(0);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
  });
});
