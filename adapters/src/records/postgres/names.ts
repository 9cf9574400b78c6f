import { hash } from "node:crypto";

/** PostgreSQL silently cuts what is longer. */
const NAME_BYTES = 63;
const SCHEMA = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/;

/** Check the name of the store's schema, which stands in SQL text between quotes. Throws TypeError. */
export function checkSchema(schema: string): string {
  if (SCHEMA.test(schema)) return schema;
  throw new TypeError("A schema's name is 1-63 of lowercase letters, digits and '_', and does not begin with a digit or 'pg_'");
}

/** A name of the store's own making, made of ASCII, as PostgreSQL keeps it: a long one ends with its hash. */
export function fittingName(name: string): string {
  if (name.length <= NAME_BYTES) return name;
  // No collection's name has `~`, so that none is taken for another's.
  return `${name.slice(0, NAME_BYTES - 21)}~${hash("sha256", name, "hex").slice(0, 20)}`;
}

/** The table of a collection, ready for SQL text. */
export function tableName(schema: string, collection: string): string {
  return `"${schema}"."${fittingName(collection)}"`;
}

/** The column that keeps the first bytes of a field's key. */
export function columnName(field: string): string {
  // With a dot before it, as no column of a record's own has.
  return fittingName(`.${field}`);
}

/** An index is named after its fields: two versions of an app that declare different ones do not undo each other's. */
export function indexName(collection: string, fields: readonly string[]): string {
  return fittingName(`${collection}(${fields.join()})`);
}
