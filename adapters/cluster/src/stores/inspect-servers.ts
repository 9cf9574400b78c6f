import { createApp } from "@portico/core";
import { createConnections, type Pooler } from "../records/postgres/connections.ts";
import type { PostgresRecordsOptions } from "../records/postgres.ts";
import { ioredisServer, type IoredisServerOptions } from "../redis/ioredis.ts";
import { redis } from "../redis/server.ts";
import { createMemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";

/** What a PostgreSQL server says of itself. */
export interface PostgresFacts {
  /** `15.4` */
  readonly version: string;
  /** Milliseconds by which its clock is ahead of this machine's; negative: behind. */
  readonly clockAheadMs: number;
  /** How many connections it allows, and how many there are. */
  readonly maxConnections: number;
  readonly connections: number;
  /** Whether an acknowledged write survives a crash of the server, by its settings `fsync` and `synchronous_commit`. */
  readonly isDurable: boolean;
  /** Whether the URL is a pooler, and whether that keeps the prepared statements of its clients. */
  readonly pooler: Pooler;
}

/** What a Redis server says of itself. */
export interface RedisFacts {
  /** `7.2.4` */
  readonly version: string;
  /** Milliseconds by which its clock is ahead of this machine's; negative: behind. */
  readonly clockAheadMs: number;
  /** Its `maxmemory-policy`: `noeviction` keeps the queue of work. Undefined if the server does not say. */
  readonly evicts: string | undefined;
}

const FACTS = `
  SELECT current_setting('server_version') AS version, current_setting('max_connections')::int AS most,
    extract(epoch FROM clock_timestamp()) * 1000 AS now, (SELECT count(*)::int FROM pg_stat_activity) AS open,
    current_setting('fsync')::boolean AND current_setting('synchronous_commit') <> 'off' AS durable`;

interface FactsRow {
  readonly version: string;
  readonly most: number;
  readonly now: string;
  readonly open: number;
  readonly durable: boolean;
}

/** Ask a PostgreSQL server. Changes nothing. Throws RecordsUnavailable, and TypeError for invalid options. */
export async function inspectPostgres({ url, tls }: Pick<PostgresRecordsOptions, "url" | "tls">): Promise<PostgresFacts> {
  const connections = createConnections({ url, tls, poolSize: 1 });
  try {
    const pooler = await connections.pooler();
    return await connections.use("read", async (client) => {
      const [row, clockAheadMs] = await beside(
        async () => (await client.query<FactsRow>(FACTS)).rows[0]!,
        ({ now }) => Number(now),
      );
      const { version, most, open, durable } = row;
      return {
        version: version.split(" ")[0]!,
        clockAheadMs,
        maxConnections: most,
        connections: open,
        isDurable: durable,
        pooler,
      };
    });
  } finally {
    await connections.end();
  }
}

/** Ask a Redis server. Changes nothing. Throws ServerAway with the reason, and TypeError for invalid options. */
export async function inspectRedis(options: IoredisServerOptions): Promise<RedisFacts> {
  const telemetry = createMemoryTelemetry();
  const app = await createApp({ name: "inspect", adapters: [ioredisServer(options), memoryTelemetry({ telemetry })] });
  const { commands } = app.port(redis);
  try {
    const [, clockAheadMs] = await beside(
      () => commands.time(),
      ([seconds, micros]) => Number(seconds) * 1000 + Number(micros) / 1000,
    );
    const info = await commands.info("server");
    const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown";
    // Servers of clouds often refuse this command.
    const policy = await commands.config("GET", "maxmemory-policy").catch(() => []);
    return { version, clockAheadMs, evicts: (policy as readonly string[])[1] };
  } catch (cause) {
    const reason = telemetry.lines.find(({ fields }) => fields?.["reason"] !== undefined)?.fields?.["reason"];
    const told = reason === undefined ? "" : ` (${String(reason)})`;
    throw new ServerAway(`Redis cannot be reached, or it refuses the connection${told}`, { cause });
  } finally {
    await app.close();
  }
}

/** A server does not answer. */
export class ServerAway extends Error {
  override readonly name = "ServerAway";
}

/** What was answered, and how far the clock in it is ahead of the middle between question and answer. */
async function beside<T>(ask: () => Promise<T>, clockOf: (answer: T) => number): Promise<readonly [T, number]> {
  const before = Date.now();
  const answer = await ask();
  return [answer, Math.round(clockOf(answer) - (before + Date.now()) / 2)];
}
