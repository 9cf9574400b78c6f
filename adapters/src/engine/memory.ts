import { defineAdapter, ports } from "@portico/core";
import { createEngine } from "./create-engine.ts";
import { createMemoryJournal } from "./memory/memory-journal.ts";
import { writeRecordsFirst } from "./records-first.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** Only this process can access its own memory, so the lease never matters. */
const LEASE_MS = 24 * 60 * 60 * 1000;
const PARK_AFTER_MS = 1000;

/** Options of `memoryEngine`. */
export interface MemoryEngineOptions {
  /** How long ended work is remembered; default: 24 hours. */
  readonly keepEndedMs?: number;
  /** Work is parked after it has only waited for this time. Default: 1 second. Infinity: never. */
  readonly parkAfterMs?: number;
}

/** The engine's rules without its durability: accepted work is lost when it closes. For tests and for trying things out. */
export const memoryEngine = defineAdapter({
  name: "engine/memory",
  port: ports.engine,
  needs: { records: ports.records, clock: ports.clock, telemetry: ports.telemetry },
  open({ records, clock, telemetry }, options: MemoryEngineOptions, scope): ports.Engine {
    const engine = createEngine({
      journal: writeRecordsFirst(createMemoryJournal(), records),
      clock,
      log: telemetry.log,
      owner: "memory",
      leaseMs: LEASE_MS,
      keepEndedMs: options.keepEndedMs ?? DAY_MS,
      parkAfterMs: options.parkAfterMs ?? PARK_AFTER_MS,
    });
    scope.onClose(() => engine.close());
    return engine;
  },
});
