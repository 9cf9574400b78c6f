import { join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { randomIds } from "@portico/adapters/ids/random";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { recordUsage } from "@portico/adapters/usage/records";
import type { ports } from "@portico/core";
import type { Browser } from "../browser/chromium.ts";
import { openAdapter } from "../conformance/open-adapter.ts";
import { openConsole } from "../browser/console.ts";
import type { Gallery } from "./gallery.ts";

const HOUR_MS = 3_600_000;
const prices = {
  currency: "EUR",
  models: [
    { model: "m-large", from: "2020-01-01", input: 2, output: 10 },
    { model: "m-small", from: "2020-01-01", input: 0.2, output: 0.8 },
  ],
};
const MODELS = [
  { model: "m-large", share: 0.4, ms: 2600, tokens: 1900 },
  { model: "m-small", share: 1, ms: 700, tokens: 800 },
] as const;

/** Pictures of the measurements of a day with work hours. */
export async function takeMeasurements(browser: Browser, save: (name: string) => string, gallery: Gallery): Promise<void> {
  await using opened = await openConsole({ browser, config: { prices } });
  const { page, service } = opened;
  await countCalls(join(service.dataDir, "records.sqlite"));
  await opened.goTo("Measurements");
  await page.getByLabel("Show by").selectOption("Model");
  await page.getByRole("tab", { name: "Day" }).click();
  const charts = page.locator('[data-drawn="true"]');
  await charts.nth(7).waitFor();
  await page.setViewportSize({ width: 1280, height: 1180 });
  await page.screenshot({ path: save("console-measurements") });
  await gallery.take(page, { name: "measurements", about: "a day of calls of models, by model", page: "measurements" });
}

/** Counts what another process could have counted in the last day. */
async function countCalls(path: string): Promise<void> {
  const clock = createManualClock({ startAt: new Date(Date.now() - 24 * HOUR_MS).toISOString() });
  const others = [sqliteRecords({ path }), manualClock({ clock }), randomIds(), memoryTelemetry({})];
  const { port, close } = await openAdapter(recordUsage({}), others);
  const chance = chances();
  for (let hour = 0; hour <= 24; hour++) {
    const work = Math.max(0.08, Math.sin(((hour - 3) / 24) * 2 * Math.PI));
    for (const { model, share, ms, tokens } of MODELS)
      for (let call = 0; call < Math.round(220 * work * share * (0.8 + 0.4 * chance())); call++)
        port.note({ source: "agent", provider: "main", model, agentId: "helper" }).end(endOf({ chance, ms, tokens }));
    for (let turn = 0; turn < Math.round(160 * work * (0.8 + 0.4 * chance())); turn++)
      port.ended({ kind: "turn", name: "helper", ...outcomeOf({ chance, ms: 5200, failing: 0.02 }) });
    for (let run = 0; run < Math.round(30 * work * (0.8 + 0.4 * chance())); run++)
      port.ended({ kind: "run", name: "digest", ...outcomeOf({ chance, ms: 21_000, failing: 0.06 }) });
    await clock.advance(hour === 24 ? 0 : HOUR_MS);
  }
  await close();
}

function endOf({
  chance,
  ms,
  tokens,
}: {
  readonly chance: () => number;
  readonly ms: number;
  readonly tokens: number;
}): ports.UsageEnd {
  if (chance() < 0.02) return { isFailed: true };
  const slow = 0.5 + chance() + (chance() < 0.06 ? 2.5 * chance() : 0);
  return {
    inputTokens: Math.round(tokens * (0.5 + chance())),
    outputTokens: Math.round(tokens * 0.3 * (0.5 + chance())),
    durationMs: ms * slow,
    firstTokenMs: 0.25 * ms * slow,
  };
}

function outcomeOf({
  chance,
  ms,
  failing,
}: {
  readonly chance: () => number;
  readonly ms: number;
  readonly failing: number;
}): Pick<ports.EndedWork, "outcome" | "durationMs"> {
  const sample = chance();
  if (sample < failing) return { outcome: "failed" };
  return sample < 2 * failing ? { outcome: "cancelled" } : { outcome: "completed", durationMs: ms * (0.5 + chance()) };
}

/** The same numbers for every picture. */
function chances(): () => number {
  let state = 42;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}
