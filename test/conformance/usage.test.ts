import { join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { randomIds } from "@portico/adapters/ids/random";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/adapters/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { recordUsage } from "@portico/adapters/usage/records";
import { type Adapter, defineAdapter, ports } from "@portico/core";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { daysOf } from "../../adapters/src/usage/records/day.ts";
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
    const others = [
      defineAdapter({ name: "records/counting", port: ports.records, needs: {}, open: (): ports.Records => counting })(),
      ...[manualClock({ clock }), randomIds(), memoryTelemetry({ telemetry: createMemoryTelemetry() })],
    ];
    const opened = await openAdapter(recordUsage({}), others);
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
