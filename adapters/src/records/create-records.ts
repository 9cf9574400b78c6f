import { ports } from "@portico/core";
import { type CollectionShape, checkCollection } from "./collection-shape.ts";
import type { Scalar } from "./field-path.ts";
import { orderValue, planQuery, type QueryPlan } from "./query-plan.ts";
import { isRecordId, toRecordText, toText } from "./record-text.ts";

export type { CollectionShape } from "./collection-shape.ts";
export type { Scalar } from "./field-path.ts";
export type { Position } from "./page-cursor.ts";
export type { QueryPlan } from "./query-plan.ts";
export { compareOrder } from "./record-order.ts";

/**
 * The part of the records that depends on the technology. IDs, values, queries and cursors are checked before it is called, so
 * that all adapters follow the same rules.
 */
export interface RecordsBackend {
  /**
   * Create the missing storage of a collection, with its indexes. Called once per collection. A technology that needs more time
   * begins here, and `get`, `page` and `commit` wait for it.
   */
  open(shape: CollectionShape): void;
  get(collection: string, id: string): Row | undefined | Promise<Row | undefined>;
  /** Up to one row more than the plan's limit: the extra row only shows that there are more. */
  page(collection: string, plan: QueryPlan): readonly Row[] | Promise<readonly Row[]>;
  /**
   * The same page without values: the order values as JSON, in which booleans may be 0 and 1. Default: taken from `page`, which reads more than an
   * index.
   */
  places?(collection: string, plan: QueryPlan): readonly PlaceRow[] | Promise<readonly PlaceRow[]>;
  /**
   * Writes that succeed or fail together, in order. Returns the version of each write, 0 for a remove of a missing record.
   * Rejects with RecordConflict or RecordsUnavailable.
   */
  commit(writes: readonly CheckedWrite[]): Promise<readonly number[]>;
  /** Whether writes of this name are conditions on rows of another adapter, which `commit` checks. Default: none are. */
  isCondition?(collection: string): boolean;
}

/** A record as a backend reads it. */
export interface Row {
  readonly id: string;
  readonly version: number;
  readonly text: string;
}

/** A record of a page without its value. */
export interface PlaceRow {
  readonly id: string;
  /** The order value as JSON. */
  readonly order: string;
}

/** One checked write. Its text is JSON that may be stored. */
export interface CheckedWrite {
  readonly collection: string;
  readonly id: string;
  /** Undefined removes the record. */
  readonly text: string | undefined;
  readonly expected: ports.Expected | undefined;
}

/** The records port over a backend. */
export function createRecords(backend: RecordsBackend): ports.Records {
  return createCheckedRecords(backend).records;
}

/** The records port with its check of batches, for an adapter that commits records together with its own rows. */
export interface CheckedRecords {
  readonly records: ports.Records;
  /** Throws TypeError for a write that cannot be stored. */
  check(writes: readonly ports.Write[]): readonly CheckedWrite[];
}

/** The records port over a backend, with its check. */
export function createCheckedRecords(backend: RecordsBackend): CheckedRecords {
  const opened = new Map<string, { readonly shape: CollectionShape; readonly collection: ports.Collection<object> }>();

  const shapeOf = (name: string): CollectionShape => {
    const found = opened.get(name);
    if (!found) throw new TypeError(`Collection ${name} was not opened in this store`);
    return found.shape;
  };

  const check: CheckedRecords["check"] = (writes) =>
    writes.map((write) => {
      const { collection, id, expected } = write;
      if (backend.isCondition?.(collection)) return { collection, id, text: undefined, expected };
      return checkWrite(shapeOf(collection), write);
    });

  const records: ports.Records = {
    collection<T extends object>(spec: ports.CollectionSpec) {
      const shape = checkCollection(spec);
      const found = opened.get(shape.name);
      if (found && found.shape.fingerprint !== shape.fingerprint) {
        throw new TypeError(`Collection ${shape.name} is open with other indexes`);
      }
      if (found) return found.collection as ports.Collection<T>;
      backend.open(shape);
      const collection = createCollection<T>(backend, shape);
      opened.set(shape.name, { shape, collection: collection as ports.Collection<object> });
      return collection;
    },
    async batch(writes) {
      await backend.commit(check(writes));
    },
  };
  return { records, check };
}

function createCollection<T extends object>(backend: RecordsBackend, shape: CollectionShape): ports.Collection<T> {
  const { name } = shape;
  const placesOf = async (plan: QueryPlan): Promise<readonly ports.Place[]> => {
    if (backend.places)
      return (await backend.places(name, plan)).map(({ id, order }) => ({ id, value: JSON.parse(order) as Scalar }));
    return (await backend.page(name, plan)).map((row) => {
      const value = orderValue(toStored<T>(name, row).value, plan.by);
      return { id: row.id, value: typeof value === "boolean" ? Number(value) : value };
    });
  };
  return {
    name,
    async get(id) {
      const row = isRecordId(id) ? await backend.get(name, id) : undefined;
      return row && toStored<T>(name, row);
    },
    async put(id, given, expected) {
      checkId(name, id);
      checkExpected(expected);
      const { text, value } = toRecordText(shape, given);
      const [version = 0] = await backend.commit([{ collection: name, id, text, expected }]);
      return { id, version, value: value as T };
    },
    async remove(id, expected) {
      const [version] = await backend.commit([checkWrite(shape, { collection: name, id, value: undefined, expected })]);
      return version !== 0;
    },
    async query(query = {}) {
      const plan = planQuery(shape, query);
      const rows = plan.empty ? [] : await backend.page(name, plan);
      const items = rows.slice(0, plan.limit).map((row) => toStored<T>(name, row));
      const last = items.at(-1);
      return { items, next: last && rows.length > plan.limit ? plan.cursorAt(last.id, last.value) : undefined };
    },
    async places(query = {}) {
      const plan = planQuery(shape, query);
      const rows = plan.empty ? [] : await placesOf(plan);
      return { places: rows.slice(0, plan.limit), isLast: rows.length <= plan.limit };
    },
    write: {
      put: (id, value, expected) => ({ collection: name, id, value, expected }),
      remove: (id, expected) => ({ collection: name, id, value: undefined, expected }),
    },
  };
}

function checkWrite(shape: CollectionShape, { collection, id, value, expected }: ports.Write): CheckedWrite {
  checkId(collection, id);
  checkExpected(expected);
  if (value !== undefined) return { collection, id, text: toText(shape, value), expected };
  if (expected === "absent") throw new TypeError("A remove expects a version or nothing");
  return { collection, id, text: undefined, expected };
}

function checkId(collection: string, id: string): void {
  if (!isRecordId(id)) throw new TypeError(`An id in ${collection} is 1-512 well-formed characters without U+0000`);
}

function checkExpected(expected: ports.Expected | undefined): void {
  // A lost expectation must not turn into an unconditional write.
  if (expected === undefined || expected === "absent" || Number.isSafeInteger(expected)) return;
  throw new TypeError("A write expects a version, 'absent' or nothing");
}

function toStored<T>(collection: string, row: Row): ports.Stored<T> {
  try {
    return { id: row.id, version: row.version, value: JSON.parse(row.text) as T };
  } catch {
    // Without its cause: a parser's message quotes its input.
    throw new ports.RecordsUnavailable(`The stored record ${collection}/${row.id} is not JSON`);
  }
}
