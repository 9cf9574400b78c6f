import { defineAdapter, optional, ports } from "@portico/core";
import { postgresStoreOf } from "../records/postgres/store.ts";
import { redis } from "../redis/server.ts";
import { createBullmqDispatcher } from "./bullmq/bullmq-dispatcher.ts";
import { ClusterEngine } from "./cluster/cluster-engine.ts";
import { openClusterJournal } from "./cluster/cluster-journal.ts";
import { engineGauges } from "./cluster/engine-gauges.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const LEASE_MS = 15_000;
/** Waiting work frees its memory early, so that any process can continue it. */
const PARK_AFTER_MS = 50;

/** Options of `bullmqEngine`. */
export interface BullmqEngineOptions {
  /** How long a process that gives no sign of life keeps its work. Default: 15 seconds. */
  readonly leaseMs?: number;
  /** How long ended work is remembered: its ID is then a duplicate, and its status is available. Default: 24 hours. */
  readonly keepEndedMs?: number;
  /** Work is parked after it has only waited for this time. Default: 50 ms. Infinity: never. */
  readonly parkAfterMs?: number;
  /** Whether this process executes work and runs chores. If false, it only accepts work. Default: true. */
  readonly executes?: boolean;
}

/**
 * Durable work that any number of processes on any number of machines share. The journal is in the schema of `records/postgres`, in
 * one commit with records. BullMQ on Redis brings work to processes; Redis may lose everything at any time. Opening throws
 * EngineUnavailable when the journal cannot be opened, and TypeError for other records.
 */
export const bullmqEngine = defineAdapter({
  name: "engine/bullmq",
  port: ports.engine,
  needs: {
    ...{ records: ports.records, bus: ports.bus, redis, clock: ports.clock, telemetry: ports.telemetry },
    readiness: optional(ports.readiness),
  },
  async open(given, options: BullmqEngineOptions, scope): Promise<ports.Engine> {
    const { records, bus, redis: server, clock, telemetry, readiness } = given;
    const store = postgresStoreOf(records);
    if (!store) throw new TypeError("The engine engine/bullmq needs records in records/postgres");
    const { leaseMs = LEASE_MS, keepEndedMs = DAY_MS, parkAfterMs = PARK_AFTER_MS, executes = true } = options;
    if (!(leaseMs >= 100)) throw new RangeError("leaseMs is a number of milliseconds from 100");
    const journal = await openClusterJournal(store);
    const engine = new ClusterEngine({
      ...{ store, journal, bus, clock, leaseMs, keepEndedMs, parkAfterMs, executes },
      dispatcher: createBullmqDispatcher(server),
      log: telemetry.log,
    });
    scope.onClose(() => engine.close());
    readiness?.add({ name: "lease", reason: () => engine.fault });
    for (const gauge of engineGauges(engine)) scope.onClose(telemetry.gauge(gauge));
    return engine;
  },
});
