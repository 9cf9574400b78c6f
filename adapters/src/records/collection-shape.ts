import type { ports } from "@portico/core";
import { isFieldPath } from "./field-path.ts";

/** A checked declaration of a collection. Its parts are safe in SQL text. */
export interface CollectionShape {
  readonly name: string;
  /** The declared field lists. The names of the indexes have no meaning. */
  readonly indexes: readonly (readonly string[])[];
  /** All fields of all indexes, without duplicates. */
  readonly fields: readonly string[];
  /** Equal for two declarations with the same meaning. */
  readonly fingerprint: string;
}

const NAME = /^[a-z0-9-]{1,64}$/;
const INDEX_FIELDS = 8;

/** Check a declaration. Throws TypeError that names the invalid part. */
export function checkCollection(spec: ports.CollectionSpec): CollectionShape {
  if (!NAME.test(spec.name)) throw new TypeError("A collection's name is 1-64 of lowercase letters, digits and '-'");
  const lists = new Map<string, readonly string[]>();
  for (const [name, fields] of Object.entries(spec.indexes ?? {})) {
    checkIndex(spec.name, name, fields);
    lists.set(fields.join(), [...fields]);
  }
  const indexes = [...lists].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, fields]) => fields);
  return {
    name: spec.name,
    indexes,
    fields: [...new Set(indexes.flat())],
    fingerprint: JSON.stringify([spec.name, indexes]),
  };
}

function checkIndex(collection: string, name: string, fields: readonly string[]): void {
  const where = `Index ${JSON.stringify(name)} of collection ${collection}`;
  if (fields.length < 1 || fields.length > INDEX_FIELDS) throw new TypeError(`${where} lists 1-${INDEX_FIELDS} fields`);
  if (new Set(fields).size !== fields.length) throw new TypeError(`${where} lists a field twice`);
  if (!fields.every(isFieldPath)) throw new TypeError(`${where} has a field that is not a dot path of letters, digits and '_'`);
}
