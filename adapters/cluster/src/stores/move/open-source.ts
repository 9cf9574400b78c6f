import { existsSync } from "node:fs";
import { createApp, ports } from "@portico/core";
import type { ImportedWork } from "../../engine/cluster/import-works.ts";
import { exportWorks } from "./export-works.ts";
import { createSecretFile, sqliteStoreOf } from "@portico/adapters/stores/sqlite-parts";
import { sqliteStore, sqliteStorePaths } from "@portico/adapters/stores/sqlite";
import { MoveFailed } from "./move-failed.ts";

/** Everything in a data directory. Rows are read as they are stored, so that damaged entries keep their positions. */
export interface MoveSource {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly blobs: ports.Blobs;
  readonly secrets: ReadonlyMap<string, string>;
  readonly collections: readonly string[];
  readonly streams: readonly SourceStream[];
  /** The newest version of a record. */
  readonly newestVersion: number;
  /** The works of the engine's journal, as the target's journal has them. */
  works(): Iterable<ImportedWork>;
  /** The texts of a stream's entries, the first one first. Undefined for an entry that is too large to be read. */
  entries(stream: SourceStream): Iterable<string | undefined>;
  close(): Promise<void>;
}

/** A stream of the log. */
export interface SourceStream {
  readonly name: string;
  readonly newest: number;
  /** Its number in the tables. */
  readonly number: number;
}

/** Open the stores of `sqliteStore` in a folder. Throws MoveFailed for a folder without stores, and the errors of the stores. */
export async function openSource(dir: string): Promise<MoveSource> {
  const { records: path, credentials } = sqliteStorePaths(dir);
  if (!existsSync(path)) throw new MoveFailed(`${dir} is not the data directory of an instance: it has no records.sqlite`);
  const stores = sqliteStore({ dir, ports: [ports.records, ports.log, ports.blobs] });
  const app = await createApp({ name: "move", adapters: stores });
  try {
    const records = app.port(ports.records);
    const { database, read } = sqliteStoreOf(records)!;
    const rowsOf = <T>(sql: string) => read(() => database.prepare(sql).all() as unknown as readonly T[]);
    const tables = rowsOf<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
    const names = tables.map(({ name }) => name);
    const entry = database.prepare(
      `SELECT place & 0xffffffff AS sequence, CASE WHEN octet_length(entry) <= ${ports.LOG_ENTRY_BYTES} THEN entry END AS entry
       FROM "_log_entries" WHERE place BETWEEN (? << 32) + 1 AND (? << 32) + 0xffffffff ORDER BY place`,
    );
    return {
      records,
      log: app.port(ports.log),
      blobs: app.port(ports.blobs),
      secrets: createSecretFile(credentials).read(),
      collections: names.filter((name) => !/^(?:_|sqlite_)/.test(name)),
      streams: rowsOf<SourceStream>(`SELECT stream AS name, newest, number FROM "_log_streams" ORDER BY stream`),
      newestVersion: rowsOf<{ version: number }>(`SELECT version FROM "_store"`)[0]?.version ?? 0,
      works: () => exportWorks(database),
      *entries({ number, newest }) {
        let sequence = 0;
        for (const row of entry.iterate(number, number)) {
          // A missing entry is a damaged one: the others keep their sequence numbers.
          while (++sequence < Number(row["sequence"])) yield undefined;
          yield typeof row["entry"] === "string" ? row["entry"] : undefined;
        }
        while (++sequence <= newest) yield undefined;
      },
      close: () => app.close(),
    };
  } catch (error) {
    await app.close();
    throw error;
  }
}
