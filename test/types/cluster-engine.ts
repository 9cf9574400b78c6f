// Nothing here runs: `npm run types` compiles it. How the page of the engine lists the adapters of a cluster.
import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { type Adapter, Secret } from "@portico/core";

export const adapters: readonly Adapter[] = [
  postgresRecords({ url: new Secret("postgres://portico@database.internal/portico") }),
  ioredisServer({ url: new Secret("redis://redis.internal") }),
  redisBus(),
  hmacSigning({ key: new Secret("…") }),
  bullmqEngine({ leaseMs: 15_000 }),
];
