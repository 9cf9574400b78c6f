import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { embeddedEngine, type EmbeddedEngineOptions } from "@portico/adapters/engine/embedded";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteStoreOf } from "@portico/adapters/records/sqlite/store";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { Adapter, ports } from "@portico/core";
import { afterAll } from "vitest";
import { type EngineUnderTest, engineConformance } from "./engine.ts";
import { singleProcessEngineConformance } from "./engine-single-process.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-engine-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LEASE_MS = 15_000;
const PARK_AFTER_MS = 1000;

function processOf(engine: Adapter, records: Adapter): EngineUnderTest {
  const clock = createManualClock();
  const [seen, store] = seeing(records);
  // Reads go on, and writes fail, as on a disk that is full.
  const write = (isAway: boolean) => sqliteStoreOf(store()!)?.database.exec(`PRAGMA query_only = ${isAway ? "ON" : "OFF"}`);
  return {
    adapters: [engine, seen, manualClock({ clock }), memoryTelemetry({})],
    pass: clock.advance,
    outage: { begin: () => write(true), end: () => write(false) },
  };
}

/** The same adapter, and what it opened last. */
function seeing(adapter: Adapter): readonly [Adapter, () => ports.Records | undefined] {
  let opened: ports.Records | undefined;
  const open: Adapter["spec"]["open"] = async (given, options, scope) => {
    opened = (await adapter.spec.open(given, options, scope)) as ports.Records;
    return opened;
  };
  return [{ ...adapter, spec: { ...adapter.spec, open } }, () => opened];
}

const inMemory = () => processOf(memoryEngine({ parkAfterMs: PARK_AFTER_MS }), memoryRecords());
engineConformance("memory", inMemory, { parkAfterMs: PARK_AFTER_MS });
singleProcessEngineConformance("memory", inMemory, { parkAfterMs: PARK_AFTER_MS });

let stores = 0;
/** The paths of what was made, so that another process can be given the same. */
const paths = new WeakMap<EngineUnderTest, string>();

function onOneStore(makeProcess: (path: string, options: EmbeddedEngineOptions) => EngineUnderTest) {
  const open = (path: string, owner: string): EngineUnderTest => {
    const made = makeProcess(path, { owner, leaseMs: LEASE_MS, parkAfterMs: PARK_AFTER_MS });
    paths.set(made, path);
    return made;
  };
  return {
    make: () => open(join(folder, `${++stores}.db`), "one"),
    // A process that died is one that is left open: the next one takes its work over while it is still there.
    owned: {
      again: (first: EngineUnderTest) => open(paths.get(first)!, "one"),
      rival: (first: EngineUnderTest) => open(paths.get(first)!, "another"),
      leaseMs: LEASE_MS,
    },
  };
}

const shared = onOneStore((path, options) => processOf(embeddedEngine(options), sqliteRecords({ path })));
engineConformance("embedded, in the file of the records", shared.make, {
  durable: shared.owned,
  parkAfterMs: PARK_AFTER_MS,
  outages: true,
});
singleProcessEngineConformance("embedded, in the file of the records", shared.make, {
  owned: { ...shared.owned, oneCommit: true },
  parkAfterMs: PARK_AFTER_MS,
});

const apart = onOneStore((path, options) => processOf(embeddedEngine({ ...options, path }), memoryRecords()));
engineConformance("embedded, with a file of its own", apart.make, { durable: apart.owned, parkAfterMs: PARK_AFTER_MS });
singleProcessEngineConformance("embedded, with a file of its own", apart.make, {
  owned: { ...apart.owned, oneCommit: false },
  parkAfterMs: PARK_AFTER_MS,
});
