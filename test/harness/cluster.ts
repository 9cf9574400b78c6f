import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { CommandResult } from "./command-room.ts";
import { runCommand, temporaryFolder } from "./portico-process.ts";
import { type PostgresDatabase, postgresDatabase } from "./postgres.ts";
import { redisPlace } from "./redis.ts";

export const CLUSTER_OWNER = "owner-token-0123456789";
export const CLUSTER_WORKFLOW = "workflow-token-0123456789";

/** What the processes of a cluster share: a database, a prefix in Redis, a key, and a folder for files. */
export interface ClusterPlace {
  /** The settings, as environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly database: PostgresDatabase;
  /** Run a command of `portico` with these settings. */
  run(...args: string[]): Promise<CommandResult>;
  remove(): Promise<void>;
}

/** A place without a schema yet. Undefined without servers: tests are then skipped. If `CI` is set, a missing server is an error. */
export async function clusterPlace(): Promise<ClusterPlace | undefined> {
  const redis = await redisPlace();
  const database = redis && (await postgresDatabase());
  if (!redis || !database) return undefined;
  const { path: folder, remove } = temporaryFolder();
  const { url, prefix } = redis();
  const env = {
    PORTICO_POSTGRES_URL: database.url,
    PORTICO_REDIS_URL: url,
    PORTICO_REDIS_PREFIX: prefix,
    PORTICO_CLUSTER_BLOBS_DIR: join(folder, "blobs"),
    PORTICO_INSTANCE_KEY: randomBytes(32).toString("base64url"),
    PORTICO_AGENT_TOKENS: JSON.stringify([{ token: CLUSTER_OWNER, userId: "owner", role: "owner" }]),
    WORKFLOW_SERVICE_TOKEN: CLUSTER_WORKFLOW,
    PORTICO_SHUTDOWN_GRACE_MS: "300",
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
