import { join } from "node:path";
import { recordAudit, type RecordAuditOptions } from "@portico/adapters/audit/records";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { randomIds } from "@portico/adapters/ids/random";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { Adapter, ports } from "@portico/core";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { auditConformance, type AuditSubject } from "./audit.ts";
import { openAdapter } from "./open-adapter.ts";

const DAY_MS = 24 * 60 * 60_000;
const folders: ReturnType<typeof temporaryFolder>[] = [];
const database = await postgresDatabase();
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()));
afterAll(() => database?.drop());

function subject(records: Adapter<typeof ports.records>, options: RecordAuditOptions = {}): AuditSubject {
  const clock = createManualClock();
  return {
    adapter: recordAudit(options),
    records,
    others: [manualClock({ clock }), randomIds(), memoryTelemetry({ telemetry: createMemoryTelemetry() })],
    pass: (ms) => clock.advance(ms),
    now: () => clock.now(),
  };
}

auditConformance("records in memory", () => subject(memoryRecords()));
auditConformance("records in SQLite", () => {
  const folder = temporaryFolder();
  folders.push(folder);
  return subject(sqliteRecords({ path: join(folder.path, "records.sqlite") }));
});
let schemas = 0;
describe.skipIf(!database)("with PostgreSQL", () => {
  auditConformance("records in PostgreSQL", () => subject(postgresRecords({ url: database!.url, schema: `audit_${++schemas}` })));
});

async function open(options: RecordAuditOptions = {}) {
  const { adapter, others, records, pass } = subject(memoryRecords(), options);
  const { port, close } = await openAdapter(adapter, [records, ...others]);
  return { audit: port, close, pass };
}

describe("audit/records", () => {
  it("says of an action in which the process ended only that it began", async () => {
    const folder = temporaryFolder();
    folders.push(folder);
    const { adapter, others, records } = subject(sqliteRecords({ path: join(folder.path, "records.sqlite") }));
    const first = await openAdapter(adapter, [records, ...others]);
    const running = Promise.withResolvers<void>();
    first.port.attempt({ action: "file.edit", who: { role: "instance" } }, () => {
      running.resolve();
      return new Promise(() => {});
    });
    await running.promise;
    await first.close();
    const second = await openAdapter(adapter, [records, ...others]);
    expect((await second.port.read()).items).toMatchObject([{ action: "file.edit", outcome: "begun" }]);
    await second.close();
  });

  it("removes expired entries, and no others", async () => {
    const { audit, close, pass } = await open({ keep: "10d" });
    await audit.record({ action: "old", who: { role: "instance" } });
    await pass(5 * DAY_MS);
    await audit.record({ action: "new", who: { role: "instance" } });
    await pass(5 * DAY_MS + 2 * 60 * 60_000);
    await expect.poll(async () => (await audit.read()).items.map(({ action }) => action)).toEqual(["new"]);
    await close();
  });

  it.each<[string, string[], string | undefined, string | undefined, string | undefined]>([
    ["the connection's", [], "192.0.2.7", "203.0.113.9", "192.0.2.7"],
    ["as IPv4", [], "::ffff:192.0.2.7", undefined, "192.0.2.7"],
    ["the one that a trusted proxy forwarded", ["10.0.0.0/8"], "10.1.2.3", "203.0.113.9", "203.0.113.9"],
    [
      "the last one that no trusted proxy forwarded",
      ["10.0.0.0/8", "::1"],
      "::1",
      "6.6.6.6, 203.0.113.9, 10.9.9.9",
      "203.0.113.9",
    ],
    ["the proxy's, if it forwarded none", ["10.0.0.0/8"], "10.1.2.3", undefined, "10.1.2.3"],
    ["the proxy's, if it forwarded no address", ["10.0.0.0/8"], "10.1.2.3", "<script>", "10.1.2.3"],
    ["without its port", ["2001:db8::/32"], "2001:db8::1", "[2001:db9::5]:443", "2001:db9::5"],
    ["unknown", ["10.0.0.0/8"], undefined, "203.0.113.9", undefined],
  ])("records the caller's address: %s", async (_what, trustedProxies, address, forwardedFor, recorded) => {
    const { audit, close } = await open({ trustedProxies });
    await audit.record({ action: "a", who: { role: "owner", address, forwardedFor } });
    const [entry] = (await audit.read()).items;
    expect(entry?.who.address).toBe(recorded);
    expect(JSON.stringify(entry)).not.toContain("6.6.6.6");
    await close();
  });

  it.each(["10.0.0.0/33", "proxy.example", "10.0.0.0/8/8", ""])(
    "refuses %j as a trusted proxy when it opens",
    async (written) => {
      await expect(open({ trustedProxies: [written] })).rejects.toThrow(TypeError);
    },
  );
});
