import { ports } from "@portico/core";
import type { CollectionShape } from "./collection-shape.ts";
import { isStorableText, readField, type Scalar } from "./field-path.ts";
import { type Position, parseCursor, queryTag, toCursor } from "./page-cursor.ts";

const DEFAULT_LIMIT = 100;
const MAXIMUM_LIMIT = 1000;

/** A query that one index can answer. */
export interface QueryPlan {
  /** Fields and the values they must equal, in the order of the index. */
  readonly where: readonly (readonly [field: string, value: string | number | boolean])[];
  /** The order field. Undefined: only by ID. */
  readonly by: string | undefined;
  readonly descending: boolean;
  /** Begin after this record. */
  readonly after: Position | undefined;
  readonly limit: number;
  /** One of the values cannot occur in any record, so the result is empty. */
  readonly empty: boolean;
  /** The cursor of a page that ends with this record. */
  cursorAt(id: string, record: object): string;
}

/**
 * Check a query against the declaration of its collection. An index covers a query if its first fields are those of `where`, in
 * any order, and its last field is the order. Ties are ordered by ID, which every index ends with.
 * Throws RecordsUnindexed, RecordCursorInvalid, TypeError for an invalid value, RangeError for a limit outside 1-1000.
 */
export function planQuery(shape: CollectionShape, query: ports.Query): QueryPlan {
  const filters = checkFilters(query.where ?? {});
  const limit = checkLimit(query.limit ?? DEFAULT_LIMIT);
  const wanted = query.order?.by;
  // A field with a fixed value cannot order: the order by ID remains.
  const by = wanted !== undefined && filters.has(wanted) ? undefined : wanted;
  const descending = query.order?.direction === "descending";
  const where = inIndexOrder(shape, filters, by).map((field) => [field, filters.get(field) ?? ""] as const);
  const tag = queryTag([shape.name, [...where].sort(([a], [b]) => (a < b ? -1 : 1)), by ?? null, descending]);
  return {
    where,
    by,
    descending,
    after: readPosition(tag, query.after, by),
    limit,
    empty: [...filters.values()].some((value) => !canBeHeld(value)),
    cursorAt: (id, record) => toCursor(tag, { value: orderValue(record, by), id }),
  };
}

/** The order value of a record. Null if the record has no such field, or the order is by ID. */
export function orderValue(record: object, by: string | undefined): Scalar {
  if (by === undefined) return null;
  return (readField(record, by) as Scalar | undefined) ?? null;
}

function readPosition(tag: string, after: ports.Query["after"], by: string | undefined): Position | undefined {
  if (after === undefined) return undefined;
  if (typeof after !== "object") return parseCursor(tag, after);
  const { value, id } = after;
  const isPlace = value === null || (by !== undefined && canBeHeld(value));
  if (!isPlace || typeof id !== "string" || !isStorableText(id))
    throw new TypeError("A place in a query has an order value and an ID");
  return { value, id };
}

function checkFilters(where: NonNullable<ports.Query["where"]>): ReadonlyMap<string, string | number | boolean> {
  const filters = new Map(Object.entries(where));
  for (const [field, value] of filters) {
    // A forgotten value must not widen the result to the records of all users.
    if (!["string", "number", "boolean"].includes(typeof value)) {
      throw new TypeError(`A query's ${field} must equal a text, a number or a boolean`);
    }
  }
  return filters;
}

function checkLimit(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAXIMUM_LIMIT)
    throw new RangeError(`A query's limit is 1-${MAXIMUM_LIMIT}`);
  return limit;
}

function inIndexOrder(shape: CollectionShape, filters: ReadonlyMap<string, unknown>, by: string | undefined): readonly string[] {
  if (filters.size === 0 && by === undefined) return [];
  const length = filters.size + (by === undefined ? 0 : 1);
  for (const fields of shape.indexes) {
    if (fields.length !== length || (by !== undefined && fields.at(-1) !== by)) continue;
    const first = fields.slice(0, filters.size);
    if (first.every((field) => filters.has(field))) return first;
  }
  const asked = [...filters.keys()].sort().join(", ") || "nothing";
  throw new ports.RecordsUnindexed(
    `Collection ${shape.name} has no index for ${asked}${by === undefined ? "" : ` ordered by ${by}`}`,
  );
}

function canBeHeld(value: unknown): boolean {
  if (typeof value === "string") return isStorableText(value);
  return typeof value === "boolean" || Number.isFinite(value);
}
