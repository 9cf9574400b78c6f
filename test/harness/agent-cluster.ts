import { redisBus } from "@portico/adapters/bus/redis";
import { postgresLog } from "@portico/adapters/log/postgres";
import { redisPresence } from "@portico/adapters/presence/redis";
import { postgresRecords } from "@portico/adapters/records/postgres";
import { ioredisServer } from "@portico/adapters/redis/ioredis";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { Secret } from "@portico/core";
import { type AgentService, type AgentServiceOptions, startAgentService } from "./agent-app.ts";
import { type PostgresDatabase, postgresDatabase } from "./postgres.ts";
import { type RedisPlace, redisPlace } from "./redis.ts";
import { createSharedWork, type SharedWork } from "./shared-work.ts";

/** Several agent services in this process that share PostgreSQL and Redis, as processes of a cluster do. */
export interface AgentCluster extends AsyncDisposable {
  readonly work: SharedWork;
  /** One more process. */
  start(name: string, options?: AgentServiceOptions): Promise<AgentService>;
}

/** What clusters of one test file stand on; undefined where a server is missing. */
export interface ClusterServers {
  readonly database: PostgresDatabase;
  readonly newPlace: () => RedisPlace;
}

/** The servers of a test file. Drop the database in the end. */
export async function clusterServers(): Promise<ClusterServers | undefined> {
  const [database, newPlace] = await Promise.all([postgresDatabase(), redisPlace()]);
  if (database && newPlace) return { database, newPlace };
  await database?.drop();
  return undefined;
}

let schemas = 0;

/** A cluster without processes. `redis`: a server in place of the shared one. */
export function createAgentCluster({ database, newPlace }: ClusterServers, redis: Partial<RedisPlace> = {}): AgentCluster {
  const schema = `cluster_${++schemas}`;
  const place = { ...newPlace(), ...redis };
  const key = new Secret(Buffer.alloc(32, 7).toString("base64url"));
  const work = createSharedWork();
  const services: AgentService[] = [];
  return {
    work,
    async start(name, options = {}) {
      const service = await startAgentService({
        ...options,
        shared: [
          postgresRecords({ url: database.url, schema, poolSize: 4 }),
          postgresLog({}),
          work.engineOf(name),
          recordSecrets({ key }),
          ioredisServer({ ...place, commandTimeoutMs: 1000 }),
          redisBus(),
          redisPresence({}),
        ],
      });
      services.push(service);
      return service;
    },
    async [Symbol.asyncDispose]() {
      for (const service of services) await service.close();
    },
  };
}
