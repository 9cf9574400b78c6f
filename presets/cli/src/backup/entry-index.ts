import { DatabaseSync } from "node:sqlite";
import type { ArchivedEntry } from "./archive-format.ts";

/** The entries of an archive, in a temporary file: an instance may have more files than fit into memory. */
export interface EntryIndex {
  /** Throws Error if there is an entry of that name. */
  add(entry: ArchivedEntry): void;
  find(name: string): ArchivedEntry | undefined;
  remove(name: string): void;
  /** Names that begin with a prefix, in order. Entries may be removed meanwhile. */
  names(prefix?: string): Iterable<string>;
  /** All entries, in the order of their names. */
  all(): Iterable<ArchivedEntry>;
  count(): number;
  close(): void;
}

const PAGE = 500;

/** Creates an index in a new file. */
export function createEntryIndex(path: string): EntryIndex {
  const database = new DatabaseSync(path);
  // The file is removed at the end in any case, so nothing in it must survive a crash.
  database.exec(`
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    CREATE TABLE entries (name TEXT PRIMARY KEY, size INTEGER NOT NULL, sha256 TEXT NOT NULL, modifiedAt INTEGER NOT NULL)
      WITHOUT ROWID;
  `);
  const sql = {
    add: database.prepare("INSERT INTO entries VALUES (?, ?, ?, ?)"),
    find: database.prepare("SELECT * FROM entries WHERE name = ?"),
    remove: database.prepare("DELETE FROM entries WHERE name = ?"),
    page: database.prepare(`SELECT * FROM entries WHERE name > ? ORDER BY name LIMIT ${PAGE}`),
    count: database.prepare("SELECT count(*) AS count FROM entries"),
  };
  function* from(start: string): Generator<ArchivedEntry> {
    for (let after = start; ;) {
      const rows = sql.page.all(after) as unknown as readonly ArchivedEntry[];
      yield* rows;
      if (rows.length < PAGE) return;
      after = rows.at(-1)!.name;
    }
  }
  return {
    add: ({ name, size, sha256, modifiedAt }) => void sql.add.run(name, size, sha256, modifiedAt),
    find: (name) => sql.find.get(name) as ArchivedEntry | undefined,
    remove: (name) => void sql.remove.run(name),
    *names(prefix = "") {
      for (const { name } of from(prefix)) {
        if (!name.startsWith(prefix)) return;
        yield name;
      }
    },
    all: () => from(""),
    count: () => Number(sql.count.get()?.["count"]),
    close: () => database.close(),
  };
}
