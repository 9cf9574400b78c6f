import type { Scalar } from "../field-path.ts";
import type { QueryPlan } from "../query-plan.ts";

/** A statement and its values. Its last parameter is the number of rows. */
export interface PageStatement {
  readonly sql: string;
  readonly values: readonly Value[];
}

type Value = string | number | bigint;

interface Condition {
  readonly sql: string;
  readonly values: readonly Value[];
}

const LARGEST_INTEGER = 2n ** 63n - 1n;

/** The expression for a field. Indexes and queries must use the same one, or SQLite does not use the index. */
export function fieldSql(field: string): string {
  return `json_extract(value, '$.${field}')`;
}

/**
 * The statements that answer a page one after another, until it is full. After a cursor there are up to three, each one range of
 * an index: the rest of its ties, the following values, and the records without the field, which SQL compares with no value.
 */
export function pageSql(collection: string, plan: QueryPlan): readonly PageStatement[] {
  return statements(collection, plan, "id, version, value AS text");
}

/** The same for a page without values: the index alone has the IDs and the order values. */
export function placesSql(collection: string, plan: QueryPlan): readonly PageStatement[] {
  // JSON, because Node.js refuses to read integers above 2^53.
  return statements(collection, plan, `id, ${plan.by === undefined ? "'null'" : `json_quote(${fieldSql(plan.by)})`} AS "order"`);
}

function statements(collection: string, plan: QueryPlan, columns: string): readonly PageStatement[] {
  const where = plan.where.flatMap(([field, value]) => equals(field, value));
  return ranges(plan).map(({ conditions, order }) => {
    const all = [...where, ...conditions];
    const direction = plan.descending ? "DESC" : "ASC";
    const terms = order.map((term) => `${term} ${direction}`).join();
    const filter = all.length > 0 ? ` WHERE ${all.map((condition) => condition.sql).join(" AND ")}` : "";
    return {
      sql: `SELECT ${columns} FROM "${collection}"${filter} ORDER BY ${terms} LIMIT ?`,
      values: all.flatMap((condition) => condition.values),
    };
  });
}

interface Range {
  readonly conditions: readonly Condition[];
  readonly order: readonly string[];
}

function ranges({ by, after, descending }: QueryPlan): readonly Range[] {
  const beyond = descending ? "<" : ">";
  if (!after) return [{ conditions: [], order: by === undefined ? ["id"] : [fieldSql(by), "id"] }];
  const laterId = { sql: `id ${beyond} ?`, values: [after.id] };
  if (by === undefined) return [{ conditions: [laterId], order: ["id"] }];

  const field = fieldSql(by);
  const missing = { sql: `${field} IS NULL`, values: [] };
  if (after.value === null) {
    const ties = { conditions: [missing, laterId], order: ["id"] };
    // Every number and every text is at least minus infinity. With IS NOT NULL, SQLite would not use the index.
    const present = { conditions: [{ sql: `${field} >= -9e999`, values: [] }], order: [field, "id"] };
    return descending ? [ties] : [ties, present];
  }
  const value = toSqlValue(after.value);
  const ties = { conditions: [{ sql: `${field} = ?`, values: [value] }, laterId], order: ["id"] };
  const others = { conditions: [{ sql: `${field} ${beyond} ?`, values: [value] }], order: [field, "id"] };
  return descending ? [ties, others, { conditions: [missing], order: ["id"] }] : [ties, others];
}

function equals(field: string, value: string | number | boolean): readonly Condition[] {
  const same = { sql: `${fieldSql(field)} = ?`, values: [toSqlValue(value)] };
  // json_extract returns 1 and 0 for true and false, which do not equal those numbers.
  if (typeof value === "boolean") return [same, { sql: `json_type(value, '$.${field}') = '${value}'`, values: [] }];
  if (value === 0 || value === 1) return [same, { sql: `json_type(value, '$.${field}') IN ('integer', 'real')`, values: [] }];
  return [same];
}

/** JSON writes a large number with zeros in place of unneeded digits. SQLite reads these digits as an exact integer. */
function toSqlValue(value: Exclude<Scalar, null>): Value {
  if (typeof value === "string") return value;
  const number = Number(value);
  if (!Number.isInteger(number) || Number.isSafeInteger(number) || Math.abs(number) >= 1e21) return number;
  const digits = BigInt(String(number));
  return digits <= LARGEST_INTEGER && digits >= -LARGEST_INTEGER ? digits : number;
}
