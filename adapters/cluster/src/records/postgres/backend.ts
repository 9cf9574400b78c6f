import { ports } from "@portico/core";
import type { CollectionShape } from "@portico/adapters/records/collection-shape";
import type { CheckedWrite, RecordsBackend, Row } from "@portico/adapters/records/create-records";
import type { QueryPlan } from "@portico/adapters/records/query-plan";
import type { Client, Connections, PoolClient } from "./connections.ts";
import { gatherReads } from "@portico/adapters/records/gathered-reads";
import { createGroupWriter, type GroupWriter, type PartChanges } from "./group-writer.ts";
import { createLocks } from "./locks.ts";
import { tableName } from "./names.ts";
import { beginsAmongLongKeys, pageSql, type PageStatement } from "./page-sql.ts";
import { prepared } from "./prepared.ts";
import { createRecordRows } from "./record-rows.ts";
import { makeStore, makeTable, making } from "./tables.ts";

/** Records in PostgreSQL, with the access that another adapter needs for its own tables in the same store. */
export interface PostgresBackend extends RecordsBackend {
  readonly schema: string;
  /** Read with the caller's own statements. They run again if the connection was lost. Throws RecordsUnavailable. */
  read<T>(read: (client: PoolClient) => Promise<T>): Promise<T>;
  /** Whether adapters create and convert their own tables when they open. */
  readonly migrates: boolean;
  /** Create the caller's own tables, under a lock. Throws RecordsUnavailable. */
  make(work: (client: PoolClient) => Promise<void>): Promise<void>;
  /** Change the caller's own rows, and records, in the shared transaction of this turn. */
  readonly change: GroupWriter["commit"];
  /**
   * Run `work` while no other process, and no other caller here, holds the lock of that name. `work` takes less than 5 s, and does
   * not use the store: it holds a connection. Throws RecordsUnavailable, and the errors of `work`.
   */
  locked<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Records, and conditions on rows of other adapters, as parts of a commit. */
  partsOf(writes: readonly CheckedWrite[]): readonly PartChanges[];
  /**
   * Let batches of records contain conditions on the caller's own rows: writes of `collection`, which begins with `_`, write
   * nothing. The change that `toChange` makes of one throws RecordConflict if the condition is false.
   */
  addCondition(collection: string, toChange: (write: CheckedWrite) => PartChanges): void;
  /** A connection that is not in the pool, for the caller to open and to close. It gives up an answer after `timeoutMs`. */
  dedicated(purpose: string, timeoutMs: number): Client;
  /** Why the database does not answer this process now; undefined if it answers. Never rejects. */
  readonly fault: Connections["fault"];
  readonly prepareAccess: Connections["prepareAccess"];
  readonly connections: () => Connections["counts"];
  close(): Promise<void>;
}

/** A store's schema, and whether opening creates and converts it. */
export interface PostgresSchema {
  readonly schema: string;
  readonly migrates: boolean;
}

/** Open a store in a database's schema, or create it. Throws RecordsUnavailable. */
export async function openPostgresBackend(
  connections: Connections,
  { schema, migrates }: PostgresSchema,
): Promise<PostgresBackend> {
  const locks = createLocks(schema);
  await makeStore(connections, locks, schema, migrates);
  const shapes = new Map<string, CollectionShape>();
  /** Collections whose tables may be missing, each with its running creation. */
  const missing = new Map<string, Promise<void> | undefined>();
  let closed = false;

  /**
   * Looks for tables one after another: a process that starts would otherwise take all connections of its pool for that, and several processes
   * those of the server. If one fails, those behind it fail, too: each would wait for the same server. Later callers try again.
   */
  let last: Promise<void> = Promise.resolve();
  const inTurn = (make: () => Promise<void>): Promise<void> => {
    const made = last.then(make);
    last = made;
    made.catch(() => {
      if (last === made) last = Promise.resolve();
    });
    return made;
  };

  const ready = (collection: string): Promise<void> | undefined => {
    const shape = shapes.get(collection);
    if (!shape) throw new TypeError(`Collection ${collection} was not opened in this store`);
    if (!missing.has(collection)) return undefined;
    const making = missing.get(collection) ?? inTurn(() => makeTable(connections, locks, schema, shape));
    missing.set(collection, making);
    making.then(
      () => missing.delete(collection),
      // After a failure, the next caller tries again.
      () => missing.get(collection) === making && missing.set(collection, undefined),
    );
    return making;
  };

  const recordRows = createRecordRows(schema, ready);
  const writer = createGroupWriter(connections, locks);

  const conditions = new Map<string, (write: CheckedWrite) => PartChanges>();
  const partsOf = (writes: readonly CheckedWrite[]): readonly PartChanges[] => {
    const plain = { part: recordRows, changes: writes };
    if (conditions.size === 0) return [plain];
    const isPlain = ({ collection }: CheckedWrite) => !conditions.has(collection);
    const others = writes.flatMap((write) => conditions.get(write.collection)?.(write) ?? []);
    const rest = writes.filter(isPlain);
    return rest.length === 0 ? others : [{ ...plain, changes: rest }, ...others];
  };

  const read: PostgresBackend["read"] = async (work) => {
    if (closed) throw new ports.RecordsUnavailable("The records store is closed");
    return connections.use("read", work);
  };
  const rowsOf = async ({ text, values }: PageStatement): Promise<readonly FoundRow[]> =>
    read((client) => prepared<FoundRow>(client, text, values));
  const readOne = gatherReads((collection, ids) => {
    const columns = `SELECT id, version, value AS text, false AS long FROM ${tableName(schema, collection)}`;
    return ids.length === 1
      ? rowsOf({ text: `${columns} WHERE id = $1`, values: ids })
      : rowsOf({ text: `${columns} WHERE id = ANY($1)`, values: [ids] });
  });

  return {
    schema,
    migrates,
    partsOf,
    read,
    make: (work) => making(connections, locks, work),
    change: writer.commit,
    async locked(name, work) {
      const client = await connections.take(`BEGIN; ${locks.writers([name])}`);
      try {
        return await work();
      } finally {
        // A lost connection has released the lock, too.
        await client.query("COMMIT").then(
          () => client.release(),
          () => client.release(true),
        );
      }
    },
    open(shape) {
      if (closed) throw new ports.RecordsUnavailable("The records store is closed");
      shapes.set(shape.name, shape);
      missing.set(shape.name, undefined);
      // Begins at once, so that the first read or write need not wait. A failure is thrown there.
      ready(shape.name)?.catch(() => {});
    },
    async get(collection, id) {
      await ready(collection);
      const row = await readOne(collection, id);
      return row && toRow(row);
    },
    async page(collection, plan) {
      await ready(collection);
      return (await pageOf(plan, (whole) => rowsOf(pageSql(schema, { name: collection }, plan, whole)))).map(toRow);
    },
    addCondition: (collection, toChange) => void conditions.set(collection, toChange),
    isCondition: (collection) => conditions.has(collection),
    dedicated: (purpose, timeoutMs) => connections.dedicated(purpose, timeoutMs),
    commit: (writes) => writer.commit(partsOf(writes)),
    fault: connections.fault,
    prepareAccess: connections.prepareAccess,
    connections: () => connections.counts,
    async close() {
      closed = true;
      await writer.finish();
      await Promise.allSettled(missing.values());
      await connections.end();
    },
  };
}

interface FoundRow {
  readonly id: string;
  readonly version: string;
  readonly text: string;
  readonly long: boolean;
}

/** Long keys are rare: they are sorted by all their bytes only if a page contains one. */
async function pageOf(plan: QueryPlan, ask: (whole: boolean) => Promise<readonly FoundRow[]>): Promise<readonly FoundRow[]> {
  if (beginsAmongLongKeys(plan)) return ask(true);
  const rows = await ask(false);
  return rows.some((row) => row.long) ? ask(true) : rows;
}

function toRow({ id, version, text }: FoundRow): Row {
  return { id, version: Number(version), text };
}
