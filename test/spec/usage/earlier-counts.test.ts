import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { randomIds } from "@portico/adapters/ids/random";
import { createMemoryRecords } from "@portico/adapters/records/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { recordUsage } from "@portico/adapters/usage/records";
import { defineAdapter, ports } from "@portico/core";
import { expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

it("counts of versions without failures and latencies are read: their refused calls are failed ones", async () => {
  const { records } = createMemoryRecords();
  const clock = createManualClock();
  const at = clock.now();
  const subject = { source: "proxy", provider: "main", model: "m" };
  const counts = { calls: 3, refused: 2, unknown: 0, inputTokens: 7, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 5 };
  await records
    .collection({ name: "usage", indexes: { byTime: ["kind", "at"] } })
    .put("hour-1", { kind: "hour", at, life: "earlier", subject, counts });
  const store = defineAdapter({ name: "records/one", port: ports.records, needs: {}, open: (): ports.Records => records });
  const { port: usage, close } = await openAdapter(recordUsage({}), [
    store(),
    manualClock({ clock }),
    randomIds(),
    memoryTelemetry({}),
  ]);
  usage.note(subject as ports.UsageSubject).end({ inputTokens: 1, outputTokens: 1, durationMs: 100 });
  const query = { since: at, until: at + 1 };
  const { series } = await usage.series({ ...query, step: "hour", top: 1 });
  expect(series[0]?.points[0]).toMatchObject({ sums: { calls: 4, refused: 2, failed: 2, inputTokens: 8 } });
  expect(series[0]?.points[0]?.duration.p50).toBeGreaterThan(90);
  expect((await usage.read(query)).groups[0]?.sums).toMatchObject({ calls: 4, failed: 2 });
  // Of the day of the change, only the hours have all calls.
  const byDay = await usage.series({ ...query, step: "day", top: 1 });
  expect(byDay.series[0]?.points[0]?.sums).toMatchObject({ calls: 4, failed: 2, inputTokens: 8 });
  await clock.advance(24 * 3_600_000);
  usage.note(subject as ports.UsageSubject).end({ inputTokens: 1, outputTokens: 1 });
  const twoDays = await usage.series({ since: at, until: clock.now() + 1, step: "day", top: 1 });
  expect(twoDays.series[0]?.points.map(({ sums }) => sums.calls)).toEqual([4, 1]);
  const { groups } = await usage.today();
  expect(groups.reduce((sum, { sums }) => sum + sums.calls, 0)).toBe(1);
  await close();
});
