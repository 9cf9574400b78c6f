import type { DatabaseSync, StatementSync } from "node:sqlite";
import { ports } from "@portico/core";
import type { CollectionShape } from "../collection-shape.ts";
import type { CheckedWrite, PlaceRow, Row } from "../create-records.ts";
import type { QueryPlan } from "../query-plan.ts";
import { inOneCommit } from "./in-one-commit.ts";
import { fieldSql, type PageStatement, pageSql, placesSql } from "./page-sql.ts";

/** One collection: its table and its prepared statements. */
export interface Table {
  get(id: string): Row | undefined;
  /** The records that exist, in any order. */
  getAll(ids: readonly string[]): readonly Row[];
  page(plan: QueryPlan): readonly Row[];
  places(plan: QueryPlan): readonly PlaceRow[];
  /**
   * One write inside the running transaction. Returns `version`, or 0 if there was no record to remove. Throws RecordConflict.
   */
  apply(write: CheckedWrite, version: number): number;
}

/** Prepare a collection. Creates its missing table and indexes. */
export function openTable(database: DatabaseSync, shape: CollectionShape): Table {
  makeTable(database, shape);
  const table = `"${shape.name}"`;
  const columns = `SELECT id, version, value AS text FROM ${table}`;
  const get = database.prepare(`${columns} WHERE id = ?`);
  const getAll = database.prepare(`${columns} WHERE id IN (SELECT value FROM json_each(?))`);
  const replaceAny = database.prepare(
    `INSERT INTO ${table} (id, version, value) VALUES (?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, value = excluded.value`,
  );
  const create = database.prepare(`INSERT INTO ${table} (id, version, value) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING`);
  const replace = database.prepare(`UPDATE ${table} SET version = ?, value = ? WHERE id = ? AND version = ?`);
  const removeAny = database.prepare(`DELETE FROM ${table} WHERE id = ?`);
  const remove = database.prepare(`DELETE FROM ${table} WHERE id = ? AND version = ?`);
  // One per query shape; the declared indexes limit their number.
  const pages = new Map<string, StatementSync>();

  const readPart = <T>({ sql, values }: PageStatement, limit: number): readonly T[] => {
    const statement = pages.get(sql) ?? database.prepare(sql);
    pages.set(sql, statement);
    return statement.all(...values, limit) as unknown as readonly T[];
  };
  const readParts = <T>(parts: readonly PageStatement[], limit: number): readonly T[] =>
    inOneSnapshot(database, parts.length > 1, () => {
      const rows: T[] = [];
      for (const part of parts) {
        const wanted = limit + 1 - rows.length;
        if (wanted > 0) rows.push(...readPart<T>(part, wanted));
      }
      return rows;
    });

  const changes = ({ id, text, expected }: CheckedWrite, version: number): number | bigint => {
    if (text === undefined) return (expected === undefined ? removeAny.run(id) : remove.run(id, expected)).changes;
    if (expected === undefined) return replaceAny.run(id, version, text).changes;
    if (expected === "absent") return create.run(id, version, text).changes;
    return replace.run(version, text, id, expected).changes;
  };

  return {
    get: (id) => get.get(id) as Row | undefined,
    getAll: (ids) => getAll.all(JSON.stringify(ids)) as unknown as readonly Row[],
    page: (plan) => readParts<Row>(pageSql(shape.name, plan), plan.limit),
    places: (plan) => readParts<PlaceRow>(placesSql(shape.name, plan), plan.limit),
    apply(write, version) {
      if (changes(write, version) > 0) return version;
      if (write.expected !== undefined) throw new ports.RecordConflict(write.collection, write.id);
      return 0;
    },
  };
}

/** A record that another process changes between two parts of a page must not be on it twice. */
function inOneSnapshot<T>(database: DatabaseSync, needed: boolean, read: () => T): T {
  if (!needed) return read();
  database.exec("BEGIN");
  try {
    return read();
  } finally {
    if (database.isTransaction) database.exec("COMMIT");
  }
}

function makeTable(database: DatabaseSync, shape: CollectionShape): void {
  // An index is named after its fields: two versions of an app with different indexes do not remove each other's.
  const indexes = shape.indexes.map((fields) => ({
    name: `${shape.name}(${fields.join()})`,
    on: [...fields.map(fieldSql), "id"].join(),
    // Fields with a fixed value always exist: records without them need no entry.
    only: fields.slice(0, -1).map((field) => `${fieldSql(field)} IS NOT NULL`),
  }));
  const present = new Set(
    database
      .prepare("SELECT name FROM sqlite_schema WHERE tbl_name = ?")
      .all(shape.name)
      .map((row) => row.name),
  );
  if ([shape.name, ...indexes.map((index) => index.name)].every((name) => present.has(name))) return;
  inOneCommit(database, () => {
    database.exec(
      `CREATE TABLE IF NOT EXISTS "${shape.name}" (id TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, value TEXT NOT NULL)`,
    );
    for (const { name, on, only } of indexes) {
      const filter = only.length > 0 ? ` WHERE ${only.join(" AND ")}` : "";
      database.exec(`CREATE INDEX IF NOT EXISTS "${name}" ON "${shape.name}" (${on})${filter}`);
    }
  });
}
