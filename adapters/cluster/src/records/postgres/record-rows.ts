import { ports } from "@portico/core";
import type { CheckedWrite } from "@portico/adapters/records/create-records";
import type { PoolClient } from "./connections.ts";
import type { Loaded, Part } from "./group-writer.ts";
import { tableName } from "./names.ts";
import { prepared } from "./prepared.ts";

/** A record before and after a group's transaction. Only records that the group wrote have a text. */
interface Found {
  readonly version: number;
  readonly text?: string;
}

/** The records that writes affect, in all their collections. */
export function createRecordRows(schema: string, ready: (collection: string) => Promise<void> | undefined): Part<CheckedWrite> {
  return {
    ready(writes) {
      const making = writes.flatMap(({ collection }) => ready(collection) ?? []);
      return making.length > 0 ? Promise.all(making) : undefined;
    },
    lockNames: ({ collection, id }) => [`${collection}/${id}`],
    size: ({ text }) => text?.length ?? 0,
    async load(client, writes) {
      const tables = new Map<string, Rows>();
      for (const [collection, ids] of idsOf(writes)) tables.set(collection, await loadRows(client, schema, collection, ids));
      const versions = await reserve(client, schema, writes.length);
      return createLoaded(client, tables, versions);
    },
  };
}

function createLoaded(client: PoolClient, tables: ReadonlyMap<string, Rows>, versions: Iterator<number>): Loaded<CheckedWrite> {
  return {
    apply({ collection, id, text, expected }, undo) {
      const { now } = tables.get(collection)!;
      const current = now.get(id);
      if (expected !== undefined && expected !== (current?.version ?? "absent")) throw new ports.RecordConflict(collection, id);
      if (text === undefined && !current) return 0;
      undo.push(() => (current ? now.set(id, current) : now.delete(id)));
      const version = versions.next().value as number;
      if (text === undefined) now.delete(id);
      else now.set(id, { version, text });
      return version;
    },
    async write() {
      for (const rows of tables.values()) await writeRows(client, rows);
    },
  };
}

/** The records of one collection that the writes affect: which of them existed, and as they are now. */
interface Rows {
  readonly table: string;
  readonly before: readonly string[];
  readonly now: Map<string, Found>;
}

async function loadRows(client: PoolClient, schema: string, collection: string, ids: ReadonlySet<string>): Promise<Rows> {
  const table = tableName(schema, collection);
  const rows = await prepared<{ id: string; version: string }>(client, `SELECT id, version FROM ${table} WHERE id = ANY($1)`, [
    [...ids],
  ]);
  const now = new Map(rows.map(({ id, version }) => [id, { version: Number(version) }]));
  return { table, before: [...now.keys()], now };
}

async function writeRows(client: PoolClient, { table, before, now }: Rows): Promise<void> {
  const gone = before.filter((id) => !now.has(id));
  if (gone.length > 0) await prepared(client, `DELETE FROM ${table} WHERE id = ANY($1)`, [gone]);
  const written = [...now].filter(([, { text }]) => text !== undefined);
  if (written.length === 0) return;
  await prepared(
    client,
    `INSERT INTO ${table} (id, version, value) SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, value = excluded.value`,
    [written.map(([id]) => id), written.map(([, { version }]) => version), written.map(([, { text }]) => text)],
  );
}

/** Requested under the records' locks, so that each version is larger than all earlier versions of those records. */
async function reserve(client: PoolClient, schema: string, count: number): Promise<Iterator<number>> {
  const rows = await prepared<{ version: string }>(
    client,
    `SELECT nextval('"${schema}"."_version"') AS version FROM generate_series(1, $1)`,
    [count],
  );
  return rows.map(({ version }) => Number(version)).values();
}

function idsOf(writes: readonly CheckedWrite[]): ReadonlyMap<string, ReadonlySet<string>> {
  const collections = new Map<string, Set<string>>();
  for (const { collection, id } of writes) {
    const ids = collections.get(collection) ?? new Set();
    collections.set(collection, ids.add(id));
  }
  return collections;
}
