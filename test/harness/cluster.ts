import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { CommandResult } from "./command-room.ts";
import { startBalancer } from "./balancer.ts";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "./portico-process.ts";
import { type PostgresDatabase, postgresDatabase } from "./postgres.ts";
import { type RedisPlace, redisPlace } from "./redis.ts";

export const CLUSTER_OWNER = "owner-token-0123456789";
export const CLUSTER_WORKFLOW = "workflow-token-0123456789";

/** The shared parts of a cluster's processes: a database, a prefix in Redis, a key, and a folder for files. */
export interface ClusterPlace {
  /** The settings, as environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly database: PostgresDatabase;
  /** Run a command of `portico` with these settings. */
  run(...args: string[]): Promise<CommandResult>;
  remove(): Promise<void>;
}

/**
 * A place without a schema yet, with these settings in addition. Undefined without servers: tests are then skipped. If `CI` is set, a missing
 * server is an error.
 */
export async function clusterPlace(more: Readonly<Record<string, string>> = {}): Promise<ClusterPlace | undefined> {
  const redis = await redisPlace();
  const database = redis && (await postgresDatabase());
  return redis && database && placeOn(database, redis(), more);
}

/** A place without a schema yet, on servers of a test's own, with these settings in addition. */
export function placeOn(
  database: PostgresDatabase,
  { url, prefix }: RedisPlace,
  more: Readonly<Record<string, string>> = {},
): ClusterPlace {
  const { path: folder, remove } = temporaryFolder();
  const env = {
    PORTICO_POSTGRES_URL: database.url,
    PORTICO_REDIS_URL: url,
    PORTICO_REDIS_PREFIX: prefix,
    ...(more["PORTICO_S3_ENDPOINT"] === undefined && { PORTICO_CLUSTER_BLOBS_DIR: join(folder, "blobs") }),
    PORTICO_INSTANCE_KEY: randomBytes(32).toString("base64url"),
    PORTICO_AGENT_TOKENS: JSON.stringify([{ token: CLUSTER_OWNER, userId: "owner", role: "owner" }]),
    WORKFLOW_SERVICE_TOKEN: CLUSTER_WORKFLOW,
    PORTICO_SHUTDOWN_GRACE_MS: "300",
    ...more,
  };
  return {
    env,
    folder,
    database,
    run: (...args) => runCommand(args, { cwd: folder, env }),
    async remove() {
      remove();
      await database.drop();
    },
  };
}

/** Several processes of one cluster, each with its own listeners, and a balancer before each surface. */
export interface RunningCluster extends AsyncDisposable {
  readonly place: ClusterPlace;
  /** All processes that were started, also those that have ended. */
  readonly processes: readonly PorticoProcess[];
  /** URL of a surface's balancer. Successive requests go to different processes. */
  url(surface: "proxy" | "workflow" | "agent"): string;
  /** Start one more process. */
  add(env?: Readonly<Record<string, string>>): Promise<PorticoProcess>;
  /**
   * Stop a process as an operator does: SIGTERM, and the balancers send it no more requests when its `/readyz` says no. Resolves
   * with its exit code.
   */
  retire(process: PorticoProcess): Promise<number | null>;
}

/** Make the schema, and start processes. Dispose of it at the end: the processes are killed and the place is removed. */
export async function startCluster(
  place: ClusterPlace,
  { count = 3, env = {} }: { readonly count?: number; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<RunningCluster> {
  const made = await place.run("migrate");
  if (made.code !== 0) throw new Error(made.stderr);
  const surfaces = ["proxy", "workflow", "agent"] as const;
  const balancers = new Map(await Promise.all(surfaces.map(async (name) => [name, await startBalancer()] as const)));
  const publicUrls = Object.fromEntries(
    [...balancers].map(([name, { url }]) => [`PORTICO_${name.toUpperCase()}_PUBLIC_URL`, url]),
  );
  const processes: PorticoProcess[] = [];
  const living = new Set<PorticoProcess>();
  const add = async (more: Readonly<Record<string, string>> = {}): Promise<PorticoProcess> => {
    const options = {
      cwd: place.folder,
      args: ["cluster"],
      env: { ...place.env, ...publicUrls, ...env, ...more },
      hasOwnProcess: true,
    };
    const started = await startPortico(options);
    processes.push(started);
    living.add(started);
    balance();
    // Another program may listen on its ports later.
    void started.exited.then(() => living.delete(started) && balance());
    return started;
  };
  const balance = (): void => {
    for (const [name, balancer] of balancers)
      balancer.setBackends([...living].flatMap(({ ready }) => ready.listeners[name]?.url ?? []));
  };
  const retire = async (process: PorticoProcess): Promise<number | null> => {
    process.signal("SIGTERM");
    const isReady = () =>
      fetch(`${process.url("agent")}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (await isReady()) await wait(20);
    living.delete(process);
    balance();
    return (await process.exited).code;
  };
  const close = async (): Promise<void> => {
    await Promise.all(processes.map((each) => each[Symbol.asyncDispose]()));
    await Promise.all([...balancers.values()].map((each) => each[Symbol.asyncDispose]()));
    await place.remove();
  };
  try {
    await Promise.all(Array.from({ length: count }, () => add()));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    place,
    processes,
    url: (surface) => `${balancers.get(surface)!.url}${surface === "proxy" ? "/v1" : ""}`,
    add,
    retire,
    [Symbol.asyncDispose]: close,
  };
}
