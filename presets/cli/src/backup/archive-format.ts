import { DatabaseSync } from "node:sqlite";
import { ports, record } from "@portico/core";
import * as v from "valibot";

/** Sources of documents of a cluster, and the names that documents of its areas may have. Deeper files of an agent belong to its skills. */
export const DOCUMENT_SOURCES = {
  agents: /^[^/]+\/(?:agent\.json|[^/]+\/.+)$/s,
  workflows: /^(?:[^/]+\/){0,3}[^/]+\.(?:json|ya?ml)$/,
} as const;

/** `agents` or `workflows`. */
export type DocumentSource = keyof typeof DOCUMENT_SOURCES;

/** The format of archives. A version refuses archives of a newer format. */
export const ARCHIVE_FORMAT = 1;

/** The first entry: it says what the archive is before anything else is read. */
export const HEAD = "portico-backup.json";
/** The last entry. Without it, the archive is incomplete. Lines of JSON: first the facts, then one line for each entry. */
export const MANIFEST = "manifest.jsonl";
/** Prefix of the files of the data directory. */
const DATA = "data/";
/** Prefix of blobs. */
export const FILES = `${DATA}files/`;
/** The copy of the records store. */
export const RECORDS = `${DATA}records.sqlite`;
/** Prefix of agents and workflow definitions: `documents/agents/`, `documents/workflows/`. */
export const DOCUMENTS = "documents/";

/** Small files of the data directory that are copied. Other files are locks, addresses of the running service, or made again. */
export const SMALL_FILES = ["credentials.json", "ports.json", "format.json", "https-certificate.pem", "https-key.pem"] as const;
const FOLDER_MARK = ".format";

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** The content of the first entry. Later formats may add keys. */
export const headSchema = v.object({ format: count, version: v.string(), createdAt: v.string() });

/** The first line of the manifest. */
export const factsSchema = v.strictObject({
  ...headSchema.entries,
  /** Of the stores in the archive, by name. `directory` is the format of the whole data directory. */
  formats: record(v.string(), count),
  /** The version of the records store: the number of its last write. */
  storeVersion: v.optional(count),
  entries: count,
});
/** The facts of an archive. */
export type ArchiveFacts = v.InferOutput<typeof factsSchema>;

/** Each further line of the manifest. */
export const entrySchema = v.strictObject({
  name: v.string(),
  size: count,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  /** Milliseconds since 1970. Files of earlier versions show it as the time of their creation. */
  modifiedAt: count,
});

/** One archived file. */
export type ArchivedEntry = v.InferOutput<typeof entrySchema>;

/** Whether a backup writes entries of this name. No such name leaves the folder that the archive is restored to. */
export function isEntryName(name: string): boolean {
  if (name === HEAD || name === MANIFEST || name === RECORDS || name === FILES + FOLDER_MARK) return true;
  if (name.startsWith(FILES)) return ports.isBlobKey(name.slice(FILES.length));
  if (name.startsWith(DATA)) return (SMALL_FILES as readonly string[]).includes(name.slice(DATA.length));
  return toDocument(name) !== undefined;
}

/** The source and name of an archived document. */
function toDocument(name: string): { readonly source: DocumentSource; readonly name: string } | undefined {
  const [, source, rest] = /^documents\/(agents|workflows)\/(.+)$/s.exec(name) ?? [];
  if (source === undefined || rest === undefined) return undefined;
  const of = source as DocumentSource;
  return ports.isDocumentName(rest) && DOCUMENT_SOURCES[of].test(rest) ? { source: of, name: rest } : undefined;
}

/** JSON of a schema. Undefined for any other text. */
export function parseJson<T extends v.GenericSchema>(schema: T, text: string): v.InferOutput<T> | undefined {
  try {
    const parsed = v.safeParse(schema, JSON.parse(text));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}

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
