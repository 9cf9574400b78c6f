import { join } from "node:path";
import { createManualClock, type ManualClock, manualClock } from "@portico/adapters/clock/manual";
import { randomIds } from "@portico/adapters/ids/random";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { recordUsage } from "@portico/adapters/usage/records";
import { type Adapter, defineAdapter, ports } from "@portico/core";
import { daysOf } from "@portico/core/kit";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { openAdapter } from "./open-adapter.ts";
import { usageConformance, type UsageSubjectUnderTest } from "./usage.ts";

const folders: ReturnType<typeof temporaryFolder>[] = [];
const database = await postgresDatabase();
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()));
afterAll(() => database?.drop());

const prices = { currency: "EUR", models: [{ model: "priced", from: "1970-01-01", input: 2, output: 10 }] };

function subject(records: () => Adapter<typeof ports.records>): UsageSubjectUnderTest {
  const clock = createManualClock();
  const midnight = clock.now() % 86_400_000 === 0;
  if (!midnight) throw new Error("The clock of tests begins at midnight");
  return {
    adapter: () => recordUsage({ prices }),
    others: () => [records(), manualClock({ clock }), randomIds(), memoryTelemetry({ telemetry: createMemoryTelemetry() })],
    pass: (ms) => clock.advance(ms),
    now: () => clock.now(),
  };
}

usageConformance("records in memory", () => {
  const { records } = createMemoryRecords();
  return subject(defineAdapter({ name: "records/shared", port: ports.records, needs: {}, open: (): ports.Records => records }));
});
usageConformance("records in SQLite", () => {
  const folder = temporaryFolder();
  folders.push(folder);
  return subject(() => sqliteRecords({ path: join(folder.path, "records.sqlite") }));
});
let schemas = 0;
describe.skipIf(!database)("with PostgreSQL", () => {
  usageConformance("records in PostgreSQL", () => {
    const schema = `usage_${++schemas}`;
    return subject(() => postgresRecords({ url: database!.url, schema }));
  });
});

/** The adapters that usage needs, with these records. */
const around = (records: ports.Records, clock: ManualClock): readonly Adapter[] => [
  defineAdapter({ name: "records/given", port: ports.records, needs: {}, open: (): ports.Records => records })(),
  ...[manualClock({ clock }), randomIds(), memoryTelemetry({ telemetry: createMemoryTelemetry() })],
];

describe("usage/records", () => {
  it("writes once per second while calls go on during each write", async () => {
    const clock = createManualClock();
    const { records } = createMemoryRecords();
    let batches = 0;
    let usage: ports.Usage;
    const used = () => usage.note({ source: "proxy", provider: "main", model: "m" }).end({ inputTokens: 1, outputTokens: 1 });
    const counting: ports.Records = {
      ...records,
      async batch(writes) {
        used();
        if (++batches > 10) throw new Error("It writes without a pause");
        return records.batch(writes);
      },
    };
    const opened = await openAdapter(recordUsage({}), around(counting, clock));
    usage = opened.port;
    used();
    for (const second of [1, 2, 3]) {
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(batches).toBe(second);
    }
    await opened.close();
    expect(batches).toBe(4);
  });

  it("writes ended work once per ten seconds, however much of it ends", async () => {
    const clock = createManualClock();
    const { records } = createMemoryRecords();
    let batches = 0;
    let written = 0;
    const counting: ports.Records = {
      ...records,
      batch(writes) {
        batches++;
        written += writes.length;
        return records.batch(writes);
      },
    };
    const { port: usage, close } = await openAdapter(recordUsage({}), around(counting, clock));
    for (let second = 0; second < 20; second++) {
      for (let ended = 0; ended < 50; ended++)
        usage.ended({ kind: "request", name: "proxy", outcome: "completed", durationMs: 1 });
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // The same record of a minute, an hour and a day each time.
    expect([batches, written]).toEqual([2, 6]);
    await close();
  });

  it("has at most 1,000 names of ended work per minute, hour and day, and one record for all others", async () => {
    const clock = createManualClock();
    const { records } = createMemoryRecords();
    let written = 0;
    const counting: ports.Records = {
      ...records,
      batch(writes) {
        written += writes.length;
        return records.batch(writes);
      },
    };
    const { port: usage, close } = await openAdapter(recordUsage({}), around(counting, clock));
    for (let name = 0; name < 1500; name++) usage.ended({ kind: "turn", name: `agent-${name}`, outcome: "completed" });
    await close();
    expect(written).toBe(3 * 1001);
  });

  it("writes again what a write lacked that failed in its middle", async () => {
    const clock = createManualClock();
    const { records } = createMemoryRecords();
    let batches = 0;
    const failing: ports.Records = {
      ...records,
      async batch(writes) {
        if (++batches === 2) throw new ports.RecordsUnavailable("The store is away");
        return records.batch(writes);
      },
    };
    const opened = await openAdapter(recordUsage({}), around(failing, clock));
    // More than one batch has.
    for (let model = 0; model < 600; model++)
      opened.port.note({ source: "proxy", provider: "main", model: `m${model}` }).end({ inputTokens: 1, outputTokens: 1 });
    for (let second = 0; second < 3; second++) {
      await clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(batches).toBeGreaterThan(2);
    // What another process sees is stored.
    const other = await openAdapter(recordUsage({}), around(records, clock));
    const all = { since: 0, until: clock.now() + 86_400_000 };
    for (const { groups } of [await other.port.today(), await other.port.read(all)])
      expect(groups.reduce((sum, { sums }) => sum + sums.inputTokens, 0)).toBe(600);
    await other.close();
    await opened.close();
  });

  it.each([
    ["UTC", "2030-03-31T12:00:00Z", "2030-03-31T00:00:00.000Z", 24],
    ["Asia/Kolkata", "2030-03-31T12:00:00Z", "2030-03-30T18:30:00.000Z", 24],
    ["Europe/Berlin", "2030-03-31T12:00:00Z", "2030-03-30T23:00:00.000Z", 23],
    ["Europe/Berlin", "2030-10-27T12:00:00Z", "2030-10-26T22:00:00.000Z", 25],
  ])("begins days at midnight in %s, also when clocks change: %s", (zone, at, start, hours) => {
    const days = daysOf(zone);
    const began = days.startOf(Date.parse(at));
    expect(new Date(began).toISOString()).toBe(start);
    expect((days.endOf(Date.parse(at)) - began) / 3_600_000).toBe(hours);
  });
});
