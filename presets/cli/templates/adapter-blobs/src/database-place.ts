import type { DatabaseSync } from "node:sqlite";
import type { createBlobs } from "@portico/adapters/blobs/create-blobs";
import { ports } from "@portico/core";

type BlobPlace = Parameters<typeof createBlobs>[0];

const KEYS_PER_PAGE = 100;
const DAY_MS = 86_400_000;
const NOW = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/** Where the bytes are stored. `open` opens a connection. Every error of the database becomes BlobsUnavailable in `createBlobs`. */
export function databasePlace(open: () => DatabaseSync): BlobPlace {
  const database = open();
  database.exec(`
    CREATE TABLE IF NOT EXISTS blobs (key TEXT PRIMARY KEY, version INTEGER NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS drafts (version INTEGER PRIMARY KEY AUTOINCREMENT, begun INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS chunks (version INTEGER, start INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (version, start))`);
  const find = database.prepare("SELECT version, size, modified FROM blobs WHERE key = ?");
  const begin = database.prepare(`INSERT INTO drafts (begun) VALUES (${NOW}) RETURNING version`);
  const write = database.prepare("INSERT INTO chunks VALUES (?, ?, ?)");
  const place = database.prepare(`INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ${NOW})`);
  const page = database.prepare("SELECT key FROM blobs WHERE key > ? AND substr(key, 1, length(?)) = ? ORDER BY key LIMIT ?");
  const removeBlob = database.prepare("DELETE FROM blobs WHERE key = ? RETURNING version");
  const removeDraft = database.prepare("DELETE FROM drafts WHERE version = ?");
  const removeChunks = database.prepare("DELETE FROM chunks WHERE version = ?");

  const together = <T>(work: () => T): T => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      database.exec("COMMIT");
      return result;
    } finally {
      if (database.isTransaction) database.exec("ROLLBACK");
    }
  };
  const discard = (version: number) =>
    together(() => {
      removeChunks.run(version);
      removeDraft.run(version);
    });
  // Drafts of processes that were killed. Younger ones may belong to another process that is running.
  for (const { version } of database.prepare(`SELECT version FROM drafts WHERE begun < ${NOW} - ${DAY_MS}`).all())
    discard(version as number);

  return {
    async draft(key) {
      const version = begin.get()!["version"] as number;
      let size = 0;
      return {
        async write(chunk) {
          if (chunk.byteLength === 0) return;
          write.run(version, size, chunk);
          size += chunk.byteLength;
        },
        place: async (ifAbsent) =>
          together(() => {
            const old = find.get(key);
            if (old && ifAbsent) throw new ports.BlobExists("The key already has a blob");
            if (old) removeChunks.run(old["version"] as number);
            place.run(key, version, size);
            removeDraft.run(version);
          }),
        discard: async () => discard(version),
      };
    },
    async find(key) {
      const found = find.get(key);
      return found && { size: found["size"] as number, modifiedAt: found["modified"] as number };
    },
    async open(key) {
      // A transaction on a connection of its own: the reader keeps these bytes when the key gets other bytes or is removed.
      const reader = open();
      reader.exec("BEGIN");
      const found = reader.prepare("SELECT version, size FROM blobs WHERE key = ?").get(key);
      if (!found) return void reader.close();
      const chunk = reader.prepare(
        `SELECT substr(bytes, ?1 - start + 1, ?2) AS bytes FROM chunks WHERE version = ?3 AND start <= ?1 ORDER BY start DESC LIMIT 1`,
      );
      return {
        size: found["size"] as number,
        async read(position, length) {
          const row = chunk.get(position, length, found["version"] as number);
          return (row?.["bytes"] as Uint8Array | undefined) ?? new Uint8Array();
        },
        close: async () => reader.close(),
      };
    },
    remove: async (key) =>
      together(() => {
        const removed = removeBlob.get(key);
        if (removed) removeChunks.run(removed["version"] as number);
        return removed !== undefined;
      }),
    async *keys(prefix) {
      for (let after = ""; ;) {
        const keys = page.all(after, prefix, prefix, KEYS_PER_PAGE).map(({ key }) => key as string);
        yield* keys;
        if (keys.length < KEYS_PER_PAGE) return;
        after = keys.at(-1)!;
      }
    },
    close: () => database.close(),
  };
}
