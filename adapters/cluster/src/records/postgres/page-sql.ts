import type { CollectionShape } from "@portico/adapters/records/collection-shape";
import type { QueryPlan } from "@portico/adapters/records/query-plan";
import { fieldKey, HEAD_BYTES, headOf, isLong, keySql, kindSql } from "./field-key.ts";
import { columnName, tableName } from "./names.ts";

/** A statement and its values. In `long`, its rows say whether another record's key may begin with the same bytes. */
export interface PageStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * The statement for a page, one range of one index. In the index, keys with the same first bytes are ordered by ID. With `whole`,
 * they are sorted by all their bytes.
 */
export function pageSql(schema: string, { name }: Pick<CollectionShape, "name">, plan: QueryPlan, whole: boolean): PageStatement {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const conditions = [...plan.where.flatMap((filter) => equals(schema, filter, bind)), ...behind(schema, plan, whole, bind)];
  const filter = conditions.length > 0 ? ` WHERE ${conditions.join(" AND ")}` : "";
  const order = orderOf(schema, plan, whole).map((term) => `${term} ${plan.descending ? "DESC" : "ASC"}`);
  const long = plan.by === undefined ? "false" : `octet_length("${columnName(plan.by)}") = ${HEAD_BYTES}`;
  return {
    text:
      `SELECT id, version, value AS text, ${long} AS long FROM ${tableName(schema, name)}${filter}` +
      ` ORDER BY ${order.join()} LIMIT ${bind(plan.limit + 1)}`,
    values,
  };
}

/** Whether whole keys are needed to find the beginning of a page. */
export function beginsAmongLongKeys({ by, after }: QueryPlan): boolean {
  return by !== undefined && after !== undefined && isLong(fieldKey(after.value));
}

type Bind = (value: unknown) => string;

function orderOf(schema: string, { by }: QueryPlan, whole: boolean): readonly string[] {
  if (by === undefined) return ["id"];
  return [`"${columnName(by)}"`, ...(whole ? [keySql(schema, by)] : []), "id"];
}

function behind(schema: string, { by, after, descending }: QueryPlan, whole: boolean, bind: Bind): readonly string[] {
  if (!after) return [];
  const beyond = descending ? "<" : ">";
  if (by === undefined) return [`id ${beyond} ${bind(after.id)}`];
  const key = fieldKey(after.value);
  const column = `"${columnName(by)}"`;
  if (!whole) return [`(${column}, id) ${beyond} (${bind(headOf(key))}::bytea, ${bind(after.id)}::text)`];
  return [
    `${column} ${beyond}= ${bind(headOf(key))}`,
    `(${keySql(schema, by)}, id) ${beyond} (${bind(key)}::bytea, ${bind(after.id)}::text)`,
  ];
}

function equals(schema: string, [field, value]: QueryPlan["where"][number], bind: Bind): readonly string[] {
  const key = fieldKey(value);
  const same = `"${columnName(field)}" = ${bind(headOf(key))}`;
  if (isLong(key)) return [same, `${keySql(schema, field)} = ${bind(key)}`];
  // False and true have the keys of 0 and 1, but are not equal to them.
  if (typeof value === "boolean") return [same, `${kindSql(schema, field)} = 'boolean'`];
  if (value === 0 || value === 1) return [same, `${kindSql(schema, field)} = 'number'`];
  return [same];
}
