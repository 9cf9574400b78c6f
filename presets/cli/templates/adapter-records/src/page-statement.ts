import type { QueryPlan } from "@portico/adapters/records/create-records";

/** The SQL expression of a field, for indexes and queries. Names of fields and collections are checked, so they are safe in SQL. */
export function fieldSql(field: string): string {
  return `json_extract(value, '$.${field}')`;
}

/**
 * Reads one row more than the plan's limit. SQLite has the order of the port: null, then numbers, then texts by their bytes. For another database, write
 * this order explicitly. Values are passed as JSON, in the same format as records.
 */
export function pageStatement(
  collection: string,
  { where, by, after, descending, limit }: QueryPlan,
): { readonly sql: string; readonly values: readonly string[] } {
  const filters = [`collection = '${collection}'`];
  const values: string[] = [];
  for (const [field, value] of where) {
    filters.push(`${fieldSql(field)} = json_extract(?, '$') AND json_type(value, '$.${field}') = json_type(?)`);
    values.push(JSON.stringify(value), JSON.stringify(value));
  }
  const key = by === undefined ? "NULL" : fieldSql(by);
  const [beyond, direction] = descending ? ["<", "DESC"] : [">", "ASC"];
  if (after?.value === null) {
    filters.push(`(${key} IS NULL AND id ${beyond} ?${descending ? "" : ` OR ${key} IS NOT NULL`})`);
    values.push(after.id);
  } else if (after) {
    filters.push(`((${key}, id) ${beyond} (json_extract(?, '$'), ?)${descending ? ` OR ${key} IS NULL` : ""})`);
    values.push(JSON.stringify(after.value), after.id);
  }
  const sql = `SELECT id, version, value AS text FROM records WHERE ${filters.join(" AND ")}
    ORDER BY ${key} ${direction}, id ${direction} LIMIT ${limit + 1}`;
  return { sql, values };
}
