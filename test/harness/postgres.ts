import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import { Client } from "pg";

/** A database of a test file's own. */
export interface PostgresDatabase {
  /** A connection URL. */
  readonly url: string;
  /** Do as a person with a database tool would. Answers the last statement's rows. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly any[]>;
  /** In bytes. */
  size(): Promise<number>;
  /** End whatever is connected and remove the database. */
  drop(): Promise<void>;
}

/**
 * A fresh database on the server that `PORTICO_TEST_POSTGRES` names, or on this machine's own. Undefined without a server: tests
 * are then skipped. If `CI` is set or the variable names a server, a missing one is an error.
 */
export async function postgresDatabase(): Promise<PostgresDatabase | undefined> {
  const server = await findServer();
  if (server === undefined) return undefined;
  const name = `portico_test_${randomBytes(8).toString("hex")}`;
  await ask(server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING UTF8 LOCALE "C"`);
  const url = ofDatabase(server, name);
  return {
    url,
    query: (sql, values) => ask(url, sql, values),
    size: () => sizeOf(url),
    drop: async () => void (await ask(server, `DROP DATABASE ${name} WITH (FORCE)`)),
  };
}

/** The database of a server that a test started itself. It is removed with its server. */
export function ownDatabase(url: string): PostgresDatabase {
  return { url, query: (sql, values) => ask(url, sql, values), size: () => sizeOf(url), drop: async () => {} };
}

/** For the one test file that says it for all. */
export function sayThatTestsAreSkipped(): void {
  console.warn("Tests of what stands on PostgreSQL are skipped: no server answers (PORTICO_TEST_POSTGRES names one)");
}

async function findServer(): Promise<string | undefined> {
  const named = process.env.PORTICO_TEST_POSTGRES;
  const users = ["postgres", userInfo().username];
  const local = users.flatMap((user) => [
    `postgres://${user}@127.0.0.1:5432/postgres`,
    `postgres://${user}@localhost/postgres?host=/var/run/postgresql`,
  ]);
  for (const url of named ? [named] : local) {
    const isThere = await ask(url, "SELECT 1 FROM pg_roles WHERE rolname = current_user AND (rolcreatedb OR rolsuper)").catch(
      () => [],
    );
    if (isThere.length > 0) return url;
  }
  if (!named && !process.env.CI) return undefined;
  throw new Error("No PostgreSQL server answers on which a test may create databases");
}

/** Do as a person with psql would. Answers the last statement's rows. */
export async function ask(url: string, sql: string, values: readonly unknown[] = []): Promise<readonly any[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 30_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    const done = values.length > 0 ? await client.query(sql, [...values]) : await client.query(sql);
    // Several statements answer a list.
    return [done].flat().at(-1)!.rows;
  } finally {
    await client.end().catch(() => {});
  }
}

async function sizeOf(url: string): Promise<number> {
  const [row] = await ask(url, "SELECT pg_database_size(current_database())::float8 AS bytes");
  return row.bytes;
}

function ofDatabase(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
