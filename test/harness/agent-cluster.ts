import { redisBus } from "@portico/cluster/bus/redis";
import { bullmqEngine } from "@portico/cluster/engine/bullmq";
import { postgresLog } from "@portico/cluster/log/postgres";
import { redisPresence } from "@portico/cluster/presence/redis";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import { recordSecrets } from "@portico/adapters/secrets/records";
import { type Adapter, Secret } from "@portico/core";
import { type AgentService, type AgentServiceOptions, startAgentService } from "./agent-app.ts";
import { withOwnSigning } from "./members.ts";
import { type PostgresDatabase, postgresDatabase } from "./postgres.ts";
import { type RedisPlace, redisPlace } from "./redis.ts";
import { openTcpLine, type TcpLine } from "./tcp-line.ts";

/** Options of one process of a cluster. */
export interface AgentProcessOptions extends AgentServiceOptions {
  /** Whether the process executes work, or only accepts it. Default: true. */
  readonly executes?: boolean;
}

/** An agent service as one process of a cluster. */
export interface AgentProcess extends AgentService {
  /** Its connections to PostgreSQL: without them, the process is dead for the others. */
  readonly line: TcpLine;
}

/** Several agent services in this process that share PostgreSQL and Redis, as processes of a cluster do. */
export interface AgentCluster extends AsyncDisposable {
  /** One more process. */
  start(options?: AgentProcessOptions): Promise<AgentProcess>;
}

/** The servers and folders that clusters of one test file use. */
export interface ClusterServers {
  readonly database: PostgresDatabase;
  readonly newPlace: () => RedisPlace;
}

/** The servers of a test file; undefined where one is missing. Drop the database in the end. */
export async function clusterServers(): Promise<ClusterServers | undefined> {
  const [database, newPlace] = await Promise.all([postgresDatabase(), redisPlace()]);
  if (database && newPlace) return { database, newPlace };
  await database?.drop();
  return undefined;
}

let schemas = 0;

/** What the processes of one cluster share, for the process with these connections to PostgreSQL. Each call of the result is one process. */
export function sharedStores(
  newPlace: ClusterServers["newPlace"],
  redis: Partial<RedisPlace> = {},
): (url: string, executes?: boolean) => readonly Adapter[] {
  const schema = `cluster_${++schemas}`;
  const place = { ...newPlace(), ...redis };
  const key = new Secret(Buffer.alloc(32, 7).toString("base64url"));
  return (url, executes = true) => [
    postgresRecords({ url, schema, poolSize: 4 }),
    postgresLog({}),
    bullmqEngine({ executes }),
    recordSecrets({ key }),
    ioredisServer({ ...place, commandTimeoutMs: 1000 }),
    withOwnSigning(redisBus()),
    withOwnSigning(redisPresence({})),
  ];
}

/** A cluster without processes. `redis`: a server in place of the shared one. */
export function createAgentCluster({ database, newPlace }: ClusterServers, redis: Partial<RedisPlace> = {}): AgentCluster {
  const stores = sharedStores(newPlace, redis);
  const services: AgentProcess[] = [];
  return {
    async start({ executes = true, ...options } = {}) {
      const url = new URL(database.url);
      const line = await openTcpLine(Number(url.port || 5432));
      [url.hostname, url.port] = ["127.0.0.1", String(line.port)];
      const service = await startAgentService({
        ...options,
        shared: stores(url.href, executes),
      });
      const process = { ...service, line };
      services.push(process);
      return process;
    },
    async [Symbol.asyncDispose]() {
      for (const service of services) {
        service.line.heal();
        await service.close();
        await service.line[Symbol.asyncDispose]();
      }
    },
  };
}
