import { ports } from "@portico/core";
import type { PartChanges } from "../../records/postgres/group-writer.ts";
import { prepared } from "../../records/postgres/prepared.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";
import { translated } from "@portico/adapters/log/log-error";
import type { PurgingBackend } from "@portico/adapters/log/purging-log";
import { createStreamRows, type StreamChange } from "./stream-rows.ts";
import { makeTables } from "./tables.ts";

/** Maximum size of a page, exceeded by at most its last entry. */
const PAGE_BYTES = 1024 * 1024;
const PAGE_ENTRIES = 500;
/** Maximum entries of a removed stream that one transaction deletes. */
const PURGE_ENTRIES = 1000;

/** The store of a log: the store of the records, or its own. */
export interface LogStore extends Pick<PostgresStore, "schema" | "read" | "make" | "migrates"> {
  /** Change streams, with records in the same commit or before. Returns the result of each change. */
  write(changes: PartChanges<StreamChange>, records: readonly ports.Write[]): Promise<readonly number[]>;
}

/** A log in PostgreSQL. Throws LogUnavailable, or what the store throws. */
export async function openPostgresLog(store: LogStore): Promise<PurgingBackend> {
  const { schema } = store;
  await makeTables(store);
  const part = createStreamRows(schema);

  return {
    append: (entries, records) => translated(store.write({ part, changes: entries }, records)),
    async remove(stream) {
      const [removed] = await translated(store.write({ part, changes: [{ stream, text: undefined }] }, []));
      return removed === 1;
    },
    async page(stream, from, limit, backwards) {
      const begin = from ?? (backwards ? Number.MAX_SAFE_INTEGER : 1);
      const values = [stream, begin, Math.min(limit, PAGE_ENTRIES)];
      const text = pageSql(schema, backwards);
      const rows = await translated(
        store.read((client) => prepared<{ sequence: string; entry: string | null }>(client, text, values)),
      );
      return rows.map(({ sequence, entry }) => ({ sequence: Number(sequence), text: entry ?? undefined }));
    },
    async count(stream) {
      const text = `SELECT newest FROM "${schema}"."_log_streams" WHERE stream = $1`;
      const rows = await translated(store.read((client) => prepared<{ newest: string }>(client, text, [stream])));
      return Number(rows[0]?.newest ?? 0);
    },
    async erase(stream, sequences) {
      const text = `UPDATE "${schema}"."_log_entries" SET entry = '' FROM "${schema}"."_log_streams" AS found
                    WHERE found.stream = $1 AND "_log_entries".number = found.number AND sequence = ANY($2::bigint[])`;
      await translated(store.read((client) => prepared(client, text, [stream, sequences])));
    },
    async purge(signal) {
      while (!signal.aborted && (await translated(store.read((client) => client.query(purgeSql(schema))))).rows[0]?.more);
    },
  };
}

/** Adds up entries until the page is full. The text of an entry over the maximum size is not even read. */
function pageSql(schema: string, backwards: boolean): string {
  const [beyond, direction] = backwards ? ["<=", "DESC"] : [">=", "ASC"];
  return `
    SELECT sequence, CASE WHEN bytes > 0 THEN entry END AS entry FROM (
      SELECT sequence, entry, bytes, sum(bytes) OVER (ORDER BY sequence ${direction}) - bytes AS before FROM (
        SELECT sequence, entry, CASE WHEN octet_length(entry) <= ${ports.LOG_ENTRY_BYTES} THEN octet_length(entry) ELSE 0 END AS bytes
        FROM "${schema}"."_log_streams" JOIN "${schema}"."_log_entries" USING (number)
        WHERE stream = $1 AND sequence ${beyond} $2 ORDER BY sequence ${direction} LIMIT $3
      ) AS found
    ) AS page WHERE before < ${PAGE_BYTES} ORDER BY sequence ${direction}`;
}

/** Deletes some entries of one removed stream. Deletes the stream when it has no more entries. */
function purgeSql(schema: string): string {
  return `
    WITH marked AS (SELECT number FROM "${schema}"."_log_removed" ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED),
    taken AS (
      SELECT number, sequence FROM "${schema}"."_log_entries" WHERE number = (SELECT number FROM marked)
      ORDER BY sequence LIMIT ${PURGE_ENTRIES}
    ),
    purged AS (DELETE FROM "${schema}"."_log_entries" WHERE (number, sequence) IN (SELECT number, sequence FROM taken)),
    forgotten AS (
      DELETE FROM "${schema}"."_log_removed" USING marked WHERE "_log_removed".number = marked.number AND NOT EXISTS (SELECT FROM taken)
    )
    SELECT EXISTS (SELECT FROM marked) AS more`;
}
