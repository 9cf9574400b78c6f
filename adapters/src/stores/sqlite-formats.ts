import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { FOLDER_FORMAT, FORMAT_FILE } from "../blobs/files/folder-format.ts";
import { JOURNAL_FORMAT } from "../engine/embedded/tables.ts";
import { LOG_FORMAT } from "../log/sqlite/tables.ts";
import { RECORDS_FORMAT } from "../records/sqlite/database.ts";
import { FORMAT_NAME, SECRET_FILE_FORMAT } from "../secrets/files/secret-file.ts";

/** The newest format of each store of `sqliteStore`. */
export const NEWEST_STORE_FORMATS = {
  records: RECORDS_FORMAT,
  log: LOG_FORMAT,
  journal: JOURNAL_FORMAT,
  files: FOLDER_FORMAT,
  credentials: SECRET_FILE_FORMAT,
} as const;

/** The formats of stores. A store that does not exist has no format. */
export type StoreFormats = Readonly<Partial<Record<keyof typeof NEWEST_STORE_FORMATS, number>>>;

/** The formats of the tables in an SQLite file of `sqliteStore`. Changes nothing. Throws the errors of SQLite. */
export function readTableFormats(database: DatabaseSync): StoreFormats {
  const one = (sql: string): number => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  const isMade = (table: string): boolean =>
    database.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) !== undefined;
  return {
    ...(isMade("_store") && { records: one("PRAGMA user_version") }),
    ...(isMade("_log_format") && { log: one(`SELECT format FROM "_log_format"`) }),
    ...(isMade("_engine_owner") && { journal: one(`SELECT format FROM "_engine_owner"`) }),
  };
}

/** The format of a folder of blobs. Undefined if the folder has no mark. */
export function readFolderFormat(dir: string): number | undefined {
  const text = readIfPresent(join(dir, FORMAT_FILE));
  return text === undefined ? undefined : Number(text);
}

/** The format of a file of secrets. Undefined for a missing file, NaN for a file that cannot be read. */
export function readSecretsFormat(path: string): number | undefined {
  const text = readIfPresent(path);
  if (text === undefined) return undefined;
  try {
    return Number((JSON.parse(text) as Record<string, unknown>)[FORMAT_NAME] ?? 1);
  } catch {
    // Without the parser's message, which quotes its input.
    return Number.NaN;
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
