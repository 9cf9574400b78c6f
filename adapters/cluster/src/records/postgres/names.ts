import { hash } from "node:crypto";

/** PostgreSQL silently cuts longer names. */
const NAME_BYTES = 63;
const SCHEMA = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/;

/** Check the name of the store's schema, which is used in SQL text between quotes. Throws TypeError. */
export function checkSchema(schema: string): string {
  if (SCHEMA.test(schema)) return schema;
  throw new TypeError("A schema's name is 1-63 of lowercase letters, digits and '_', and does not begin with a digit or 'pg_'");
}

/** A generated ASCII name that fits PostgreSQL's limit: a long one ends with its hash. */
export function fittingName(name: string): string {
  if (name.length <= NAME_BYTES) return name;
  // No collection name contains `~`, so names cannot collide.
  return `${name.slice(0, NAME_BYTES - 21)}~${hash("sha256", name, "hex").slice(0, 20)}`;
}

/** The table of a collection, ready for SQL text. */
export function tableName(schema: string, collection: string): string {
  return `"${schema}"."${fittingName(collection)}"`;
}

/** The column with the first bytes of a field's key. */
export function columnName(field: string): string {
  // It begins with a dot, unlike the store's own columns.
  return fittingName(`.${field}`);
}

/** An index is named after its fields: two versions of an app with different indexes do not remove each other's. */
export function indexName(collection: string, fields: readonly string[]): string {
  return fittingName(`${collection}(${fields.join()})`);
}
