import type { BullmqEngineOptions } from "@portico/cluster/engine/bullmq";
import { afterAll } from "vitest";
import { type ClusterProcess, createEngineCluster } from "../harness/engine-cluster.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { redisPlace } from "../harness/redis.ts";
import { engineConformance } from "./engine.ts";
import { sharedEngineConformance } from "./engine-shared.ts";
import type { EngineUnderTest } from "./engine-subject.ts";

const PARK_AFTER_MS = 1000;
/** Of processes that are frozen. */
const SHORT_LEASE_MS = 2000;

const database = await postgresDatabase();
const redis = await redisPlace();
const cluster = createEngineCluster();
afterAll(async () => {
  await cluster.close();
  await database?.drop();
});

if (database && redis) {
  let stores = 0;
  const make = (options: BullmqEngineOptions = {}) => {
    const { url, prefix } = redis();
    const place = { postgresUrl: database.url, schema: `s${++stores}`, redisUrl: url, prefix };
    return cluster.open(place, { parkAfterMs: PARK_AFTER_MS, ...options });
  };
  const lineOf = (under: EngineUnderTest) => (under as ClusterProcess).postgres;
  const beside = (under: EngineUnderTest, options: BullmqEngineOptions = {}) =>
    cluster.open((under as ClusterProcess).place, { parkAfterMs: PARK_AFTER_MS, ...options });

  engineConformance("bullmq, with a journal in PostgreSQL", () => make(), {
    durable: {
      // A process without a connection to the database is dead for all others.
      again(first) {
        lineOf(first).cut();
        return beside(first);
      },
    },
    parkAfterMs: PARK_AFTER_MS,
    outages: true,
    backlog: 140,
  });

  sharedEngineConformance("bullmq, with a journal in PostgreSQL", {
    make: () => make({ leaseMs: SHORT_LEASE_MS }),
    beside: (first) => beside(first, { leaseMs: SHORT_LEASE_MS }),
    kill: (under) => lineOf(under).cut(),
    freeze: (under) => lineOf(under).hold(),
    thaw: (under) => lineOf(under).heal(),
    parkAfterMs: PARK_AFTER_MS,
  });
}
