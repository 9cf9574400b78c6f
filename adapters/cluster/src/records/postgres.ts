import { defineAdapter, type Live, optional, ports, type Secret } from "@portico/core";
import type { TlsOptions } from "../tls-context.ts";
import { createCheckedRecords } from "@portico/adapters/records/create-records";
import { openPostgresBackend, type PostgresBackend } from "./postgres/backend.ts";
import { type ConnectionAccess, createConnections } from "./postgres/connections.ts";
import { checkSchema } from "./postgres/names.ts";
import { shareStore } from "./postgres/store.ts";

/** Options of `postgresRecords`. */
export interface PostgresRecordsOptions {
  /** A connection URL, `postgres://user:password@host:port/database`, or `socket:/directory?db=database` for a socket of this machine. */
  readonly url: string | Secret;
  /**
   * The same server without a pooler, for connections that hold a lock of their session: `engine/bullmq` has one. Default: `url`.
   */
  readonly directUrl?: string | Secret | undefined;
  /** Connect with TLS, and check the server's certificate and name. The url then has no `ssl…` parameters. Default: as the url says. */
  readonly tls?: TlsOptions | undefined;
  /**
   * Other credentials and certificates for the same database, while the app is open: for the connections that are opened later. Open ones
   * stay. Default: they never change.
   */
  readonly rotation?: Live<ConnectionAccess> | undefined;
  /** The schema of the store's tables, created if it is missing. It may contain no other tables. Default: `portico`. */
  readonly schema?: string;
  /** Maximum number of connections. Default: 10. */
  readonly poolSize?: number;
  /**
   * Whether connections prepare statements that they repeat. False is for a pooler at `url` that gives each transaction another session and
   * does not know prepared statements. Default: true.
   */
  readonly preparedStatements?: boolean;
  /**
   * Whether opening creates and converts the schema. If false, opening throws where that is necessary, and `migratePostgresStore`
   * must run first. Tables of collections are created either way. Default: true.
   */
  readonly migrate?: boolean;
}

/**
 * Records in a PostgreSQL database. Any number of processes on any number of machines may use it at the same time. Writes of one
 * event-loop turn share a commit. Opening throws RecordsUnavailable when the database is unreachable or not in UTF8, when the
 * schema is not a records store, has a newer version, or needs a migration that the options exclude, or when a pooler loses prepared
 * statements. It throws TypeError for
 * invalid options.
 */
export const postgresRecords = defineAdapter({
  name: "records/postgres",
  port: ports.records,
  needs: { readiness: optional(ports.readiness), telemetry: optional(ports.telemetry) },
  async open({ readiness, telemetry }, options: PostgresRecordsOptions, scope) {
    const backend = await openPostgresStore(options);
    scope.onClose(backend.close);
    if (options.rotation) scope.onClose(options.rotation.follow(backend.prepareAccess));
    readiness?.add({ name: "PostgreSQL", reason: backend.fault });
    const gauge: ports.Gauge = {
      name: "portico_postgres_connections",
      help: "Connections of this process to PostgreSQL that work (busy) or are free, and callers that wait for one (waiting)",
      read: () => Object.entries(backend.connections()).map(([state, value]) => ({ labels: { state }, value })),
    };
    if (telemetry) scope.onClose(telemetry.gauge(gauge));
    const { records, check } = createCheckedRecords(backend);
    shareStore(records, { ...backend, recordChanges: (writes) => backend.partsOf(check(writes)) });
    return records;
  },
});

const POOL_SIZE = 10;
const LOSES_STATEMENTS =
  "The pooler before PostgreSQL loses prepared statements: use one that keeps them (PgBouncer 1.21 or later), or give preparedStatements: false (cluster.postgres.preparedStatements)";

/** The backend of a store, for records or for another adapter alone. Throws as opening the adapter does. */
export async function openPostgresStore({
  url,
  directUrl,
  tls,
  schema = "portico",
  poolSize = POOL_SIZE,
  preparedStatements = true,
  migrate = true,
}: PostgresRecordsOptions): Promise<PostgresBackend> {
  const name = checkSchema(schema);
  const connections = createConnections({ url, directUrl, tls, poolSize, preparedStatements });
  try {
    const backend = await openPostgresBackend(connections, { schema: name, migrates: migrate });
    if (preparedStatements && (await connections.pooler()) === "loses statements")
      throw new ports.RecordsUnavailable(LOSES_STATEMENTS);
    return backend;
  } catch (error) {
    await connections.end();
    throw error;
  }
}
