import { defineAdapter, ports, type Scope } from "@portico/core";
import { postgresStoreOf } from "../records/postgres/store.ts";
import { openPostgresStore, type PostgresRecordsOptions } from "../records/postgres.ts";
import { toLogError } from "@portico/adapters/log/log-error";
import { type LogStore, openPostgresLog } from "./postgres/postgres-log.ts";
import { createPurgingLog } from "@portico/adapters/log/purging-log";

/**
 * A database only for the log. Required if the records are not in `records/postgres`. Without a `url`, the log is in the records'
 * own schema, and entries and their records are one commit. With it, the records are written first.
 */
export type PostgresLogOptions = PostgresRecordsOptions | { readonly [name in keyof PostgresRecordsOptions]?: undefined };

/**
 * A log in a PostgreSQL database. Any number of processes may append at the same time. Opening throws LogUnavailable when the
 * database is unreachable or was written by a newer version, and TypeError without both a `url` and a records store to share.
 */
export const postgresLog = defineAdapter({
  name: "log/postgres",
  port: ports.log,
  needs: { records: ports.records },
  async open({ records }, options: PostgresLogOptions, scope): Promise<ports.EventLog> {
    try {
      return createPurgingLog(await openPostgresLog(await storeFor(records, options, scope)), scope);
    } catch (error) {
      throw toLogError(error);
    }
  },
});

async function storeFor(records: ports.Records, options: PostgresLogOptions, scope: Scope): Promise<LogStore> {
  if (options.url === undefined) {
    const shared = postgresStoreOf(records);
    if (!shared) throw new TypeError("The log needs a url of its own, because the records are not in PostgreSQL");
    return {
      ...shared,
      write: async (changes, writes) => {
        const results = await shared.change([...shared.recordChanges(writes), changes]);
        return results.slice(writes.length);
      },
    };
  }
  const backend = await openPostgresStore(options);
  scope.onClose(backend.close);
  return {
    ...backend,
    write: async (changes, writes) => {
      if (writes.length > 0) await records.batch(writes);
      return backend.change([changes]);
    },
  };
}
