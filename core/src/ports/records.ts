import { definePort, type Port } from "../port.ts";

/**
 * Typed collections of JSON records with declared indexes and optimistic locking. A write is durable when its promise resolves.
 * Several processes may use one store at the same time where the technology allows it; each sees the others' finished writes.
 * Writes of one process take effect in the order in which they were called, awaited or not. After closing, which waits for them,
 * everything rejects with RecordsUnavailable.
 */
export interface Records {
  /**
   * Open a collection, making its table and indexes where they are missing. The same spec again gives the same collection; the
   * same name with other indexes throws TypeError, and so does a spec that is not as `CollectionSpec` says.
   */
  collection<T extends object>(spec: CollectionSpec): Collection<T>;
  /**
   * Several writes, also to several collections of this store, that succeed or fail together. They are done in their order: a
   * later one of the same record sees the earlier. Throws RecordConflict and then nothing was written; none at all is no error.
   */
  batch(writes: readonly Write[]): Promise<void>;
}

export interface CollectionSpec {
  /** 1-64 of lowercase letters, digits and `-`. */
  readonly name: string;
  /**
   * Each index lists 1-8 fields: dot paths into the record, of letters, digits and `_`, that do not enter lists. It covers the
   * queries whose `where` has exactly its fields, and those whose `where` has all but its last, which then orders. An indexed
   * field holds a text (well-formed and without U+0000), a number, a boolean, null or nothing; null counts as nothing.
   */
  readonly indexes?: Readonly<Record<string, readonly string[]>>;
}

export interface Collection<T extends object> {
  readonly name: string;
  /** Undefined where there is none, and for what can be no id. Every answer is a copy of the caller's own. */
  get(id: string): Promise<Stored<T> | undefined>;
  /**
   * Write a record. `expected: "absent"` only creates, a version only replaces that version, omitted writes whatever was there.
   * Answers what `get` would: the value as JSON keeps it. An id is 1-512 well-formed characters without U+0000; a value is a JSON
   * object that nests at most 1000 deep. Throws RecordConflict when `expected` does not hold, TypeError for what cannot be
   * stored.
   */
  put(id: string, value: T, expected?: Expected): Promise<Stored<T>>;
  /** True if there was one. Throws RecordConflict when a given version does not hold. */
  remove(id: string, expected?: number): Promise<boolean>;
  /**
   * Throws RecordsUnindexed when no declared index covers `where` and `order`, RecordCursorInvalid, RangeError for a limit
   * outside 1-1000, and TypeError for a `where` value of another type, undefined included: a forgotten filter must not show
   * everything.
   */
  query(query?: Query): Promise<Page<T>>;
  /** The same writes as values, for `records.batch`. */
  readonly write: {
    put(id: string, value: T, expected?: Expected): Write;
    remove(id: string, expected?: number): Write;
  };
}

/** `"absent"`: there is no such record yet; a number: that version is the current one. */
export type Expected = number | "absent";

export interface Stored<T> {
  readonly id: string;
  /**
   * Grows with every write to this record, and is given once in a store: a record that was removed and made again has a version
   * that it never had before, so that nobody who read the old one can replace the new.
   */
  readonly version: number;
  readonly value: T;
}

export interface Query {
  /** Field path to the value it must equal, in type too; all must hold. A field that is missing in a record equals nothing. */
  readonly where?: Readonly<Record<string, string | number | boolean>>;
  /**
   * Default: by id, ascending. Ties are ordered by id in the same direction. Ascending, records without the field come first,
   * then numbers (false as 0, true as 1), then texts. Texts and ids are ordered by their UTF-8 bytes, not by any language's
   * alphabet.
   */
  readonly order?: { readonly by: string; readonly direction: "ascending" | "descending" };
  /** `next` of the page before. Works on while records come and go; opaque; anything else throws RecordCursorInvalid. */
  readonly after?: string;
  /** 1-1000; default 100. */
  readonly limit?: number;
}

export interface Page<T> {
  readonly items: readonly Stored<T>[];
  /** Set when there may be more; undefined when there was no more at that moment. */
  readonly next: string | undefined;
}

/** One write of a batch: made by `collection.write`, opaque to everyone but its adapter. */
export interface Write {
  readonly collection: string;
  readonly id: string;
  /** Undefined removes. */
  readonly value: object | undefined;
  readonly expected: Expected | undefined;
}

/** Thrown when what a write expected does not hold. */
export class RecordConflict extends Error {
  override readonly name = "RecordConflict";
  readonly collection: string;
  readonly id: string;

  constructor(collection: string, id: string) {
    super(`Record ${collection}/${id} is not what the write expected`);
    this.collection = collection;
    this.id = id;
  }
}

/** Thrown by a query that would have to read the whole collection: declare an index for it. */
export class RecordsUnindexed extends Error {
  override readonly name = "RecordsUnindexed";
}

/** Thrown by a query whose `after` is not a cursor of this query. */
export class RecordCursorInvalid extends Error {
  override readonly name = "RecordCursorInvalid";
}

/**
 * Thrown when the store cannot be reached, is full, locked for too long, broken or closed. Whether a write took effect is then
 * unknown.
 */
export class RecordsUnavailable extends Error {
  override readonly name = "RecordsUnavailable";
}

export const records: Port<Records> = definePort<Records>("records");
