import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { readMark } from "@portico/adapters/stores/sqlite-mark";
import type { DataDirectory } from "../data-directory.ts";
import { checkDirectoryFormat } from "../directory-format.ts";
import { CommandFailed } from "../exit-codes.ts";
import { readRestoredFrom, type RestoredFrom } from "../restored-from.ts";
import { printable } from "../terminal/printable.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "records store";
const RESTORE = "portico restore FILE, with an earlier backup and an empty --data-dir; some of the stored data cannot be read";

/** Checks that the stores are intact, and in a format that this version reads. Changes nothing, and may run while a service runs. */
export function checkStores(directory: DataDirectory): readonly Finding[] {
  try {
    checkDirectoryFormat(directory);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [wrong("data directory", error.message, "install the version that wrote it")];
  }
  const marked = readMark(directory.records);
  if (!existsSync(directory.records))
    return marked === undefined ? [] : [wrong(ABOUT, `${directory.records} existed before and is missing`, RESTORE)];
  try {
    const database = new DatabaseSync(directory.records, { readOnly: true });
    try {
      return [checkDatabase(database, marked, readRestoredFrom(directory))];
    } finally {
      database.close();
    }
  } catch (error) {
    return [wrong(ABOUT, `${directory.records} cannot be read (${reasonOf(error)})`, RESTORE)];
  }
}

function checkDatabase(database: DatabaseSync, marked: number | undefined, origin: RestoredFrom | undefined): Finding {
  const [damage] = database
    .prepare("PRAGMA integrity_check(1)")
    .all()
    .map((row) => String(row["integrity_check"]));
  if (damage !== "ok") return wrong(ABOUT, "it is damaged", RESTORE);
  const isMade = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_store'").get() !== undefined;
  const version = isMade ? Number(database.prepare(`SELECT version FROM "_store"`).get()?.["version"]) : 0;
  if (marked === undefined || version >= marked) return fine(ABOUT, "it is intact");
  if (origin?.storeVersion === version && marked === version + 1)
    return fine(ABOUT, `it is intact, as restored from the backup of ${printable(origin.createdAt)}`);
  return wrong(
    ABOUT,
    `the last writes are missing: the store is at version ${version}, but version ${marked} was written`,
    "put its -wal file back if you have it, or restore a backup; the service also starts without the missing data, and then lookups answer `unknown`",
  );
}

/** SQLite's own message, which quotes no stored data. */
function reasonOf(error: unknown): string {
  return error instanceof Error && "errstr" in error ? String(error.errstr) : "unknown reason";
}
