import { readdirSync, readFileSync } from "node:fs";
import { Client } from "pg";
import { ownRedis } from "../../harness/redis.ts";
import { postgresServer } from "../../harness/postgres-server.ts";
import { cpuOf } from "../proxy/child.ts";

/** A PostgreSQL and a Redis server that only the benchmark uses, so that the work of other programs is not counted. */
export interface Servers extends AsyncDisposable {
  readonly postgresUrl: string;
  readonly redisUrl: string;
  /** The processor time that each server has used until now, in milliseconds. */
  spent(): { readonly postgres: number; readonly redis: number };
  /** The rows of one statement. */
  query(sql: string): Promise<readonly any[]>;
  /** A command as a person with redis-cli would give it. */
  ask(...command: readonly [string, ...string[]]): Promise<unknown>;
}

/** Start both. PostgreSQL flushes each commit to the disk; Redis keeps nothing on disk. */
export async function startServers(): Promise<Servers> {
  const settings = { fsync: "on", max_connections: "200", shared_buffers: "256MB", max_wal_size: "4GB" };
  const [postgres, redis] = await Promise.all([postgresServer({ settings }), ownRedis()]);
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const postmaster = parentOf(rows[0]!.pid)!;
  const redisPid = Number(/process_id:(\d+)/.exec(String(await redis.ask("INFO", "server")))![1]);
  return {
    postgresUrl: postgres.url,
    redisUrl: redis.url,
    spent: () => ({ postgres: familyTime(postmaster), redis: (cpuOf(redisPid) ?? Number.NaN) / 1000 }),
    query: async (sql) => (await client.query(sql)).rows,
    ask: redis.ask,
    async [Symbol.asyncDispose]() {
      await client.end();
      await Promise.all([postgres[Symbol.asyncDispose](), redis[Symbol.asyncDispose]()]);
    },
  };
}

/** Processor time of a process and its children in milliseconds. Children that have ended are included. */
export function familyTime(pid: number): number {
  const children = readdirSync("/proc")
    .map(Number)
    .filter((each) => each > 0 && parentOf(each) === pid);
  const [, , endedUser = 0, endedSystem = 0] = ticksOf(pid);
  // The system counts the time of ended children in hundredths of a second.
  const living = [pid, ...children].reduce((sum, each) => sum + (cpuOf(each) ?? 0) / 1000, 0);
  return living + (endedUser + endedSystem) * 10;
}

function parentOf(pid: number): number | undefined {
  return statOf(pid)?.[1];
}

/** Processor time of a process (user and system) and of its ended children (user and system). */
function ticksOf(pid: number): readonly number[] {
  return statOf(pid)?.slice(11, 15) ?? [];
}

/** The fields of `/proc/PID/stat` after the name. */
function statOf(pid: number): readonly number[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
  } catch {
    return undefined;
  }
}
