import { definePort, type Port } from "../grammar/port.ts";

/**
 * Typed collections of JSON records with declared indexes and optimistic locking. A write is durable when its promise resolves.
 * Several processes may use one store at the same time where the technology allows it; each sees the others' finished writes.
 * Writes of one process take effect in the order in which they were called, awaited or not. After closing, which waits for them,
 * everything rejects with RecordsUnavailable.
 */
export interface Records {
  /**
   * Open a collection. Creates its table and indexes if they are missing. The same spec returns the same collection. The same
   * name with other indexes throws TypeError, and so does a spec that violates `CollectionSpec`.
   */
  collection<T extends object>(spec: CollectionSpec): Collection<T>;
  /**
   * Several writes, also to several collections of this store, that succeed or fail together. They are applied in order: a later
   * write of the same record sees the earlier one. Throws RecordConflict, and then nothing was written. An empty list is not an
   * error.
   */
  batch(writes: readonly Write[]): Promise<void>;
}

/** Name and indexes of a collection. */
export interface CollectionSpec {
  /** 1-64 of lowercase letters, digits and `-`. */
  readonly name: string;
  /**
   * Each index lists 1-8 fields: dot paths into the record, of letters, digits and `_`, that do not enter lists. It covers the
   * queries whose `where` has exactly its fields, and those whose `where` has all but its last field, which is then the order. An
   * indexed field holds a text (well-formed and without U+0000), a number, a boolean, or null, or is missing; null counts as
   * missing.
   */
  readonly indexes?: Readonly<Record<string, readonly string[]>>;
}

/** Records of one kind. */
export interface Collection<T extends object> {
  readonly name: string;
  /** Undefined for a missing record and for an invalid ID. Every result is the caller's own copy. */
  get(id: string): Promise<Stored<T> | undefined>;
  /**
   * Write a record. `expected: "absent"` only creates; a version only replaces that version; without `expected`, any state is
   * overwritten. Returns the same as `get` would: the value as JSON keeps it. An ID is 1-512 well-formed characters without
   * U+0000. A value is a JSON object that nests at most 1000 deep. Throws RecordConflict when `expected` does not match,
   * TypeError for a value that cannot be stored.
   */
  put(id: string, value: T, expected?: Expected): Promise<Stored<T>>;
  /** True if the record existed. Throws RecordConflict if a given version does not match. */
  remove(id: string, expected?: number): Promise<boolean>;
  /**
   * Throws RecordsUnindexed when no declared index covers `where` and `order`, RecordCursorInvalid, RangeError for a limit
   * outside 1-1000, and TypeError for a `where` value of another type, undefined included: a forgotten filter must not show
   * everything.
   */
  query(query?: Query): Promise<Page<T>>;
  /**
   * The places of the records that `query` would return, in this order, without their values. Much faster where the store reads only an index.
   * Throws the same errors.
   */
  places(query?: Query): Promise<Places>;
  /** The same writes as values, for `records.batch`. */
  readonly write: {
    put(id: string, value: T, expected?: Expected): Write;
    remove(id: string, expected?: number): Write;
  };
}

/** `"absent"`: the record does not exist yet. A number: the current version. */
export type Expected = number | "absent";

/** A record as it is stored. */
export interface Stored<T> {
  readonly id: string;
  /**
   * Grows with every write to this record, and is unique in a store: a record that was removed and created again never gets an
   * old version, so a caller that read the old record cannot replace the new one.
   */
  readonly version: number;
  readonly value: T;
}

/** Filter and order of a query. */
export interface Query {
  /**
   * Field path and the value it must equal, including its type. All must match. A field that is missing in a record equals no
   * value.
   */
  readonly where?: Readonly<Record<string, string | number | boolean>>;
  /**
   * Default: by id, ascending. Ties are ordered by id in the same direction. Ascending, records without the field come first,
   * then numbers (false as 0, true as 1), then texts. Texts and ids are ordered by their UTF-8 bytes, not by any language's
   * alphabet.
   */
  readonly order?: { readonly by: string; readonly direction: "ascending" | "descending" };
  /**
   * `next` of the previous page. It stays valid while records are added and removed. Opaque; any other text throws
   * RecordCursorInvalid. Or a place of the caller's own, which no record needs to have.
   */
  readonly after?: string | Place;
  /** 1-1000; default 100. */
  readonly limit?: number;
}

/** The places of one page. */
export interface Places {
  /** The order value of a boolean is a number: 0 or 1. */
  readonly places: readonly Place[];
  /** Whether this was the last page at that moment. */
  readonly isLast: boolean;
}

/** A place in the order of a query: its page begins with the first record behind it, in the direction of the order. */
export interface Place {
  /** The value of the order field. Null is the place of records without the field, and the only one without an order. */
  readonly value: string | number | boolean | null;
  /** Among records with this value. An empty ID is before all of them in ascending order, and behind all of them in descending order. */
  readonly id: string;
}

/** One page of the results of a query. */
export interface Page<T> {
  readonly items: readonly Stored<T>[];
  /** Set if there may be more results; undefined if this was the last page at that moment. */
  readonly next: string | undefined;
}

/** One write of a batch: made by `collection.write`, opaque to all code except its adapter. */
export interface Write {
  readonly collection: string;
  readonly id: string;
  /** Undefined removes the record. */
  readonly value: object | undefined;
  readonly expected: Expected | undefined;
}

/**
 * The collection in which a store records the loss of acknowledged writes, if it can detect it. One record per loss, written when
 * the store is opened. Services that miss data look here for the reason.
 */
export const STORE_LOSSES = "store-losses";

/** The missing versions of the store, both ends inclusive. Each belonged to one write, or to several writes of one commit. */
export interface StoreLoss {
  readonly from: number;
  readonly to: number;
  /** Whether the operator was told of the loss. */
  readonly isTold?: boolean | undefined;
}

/** Thrown when the expected version of a write does not match. */
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
 * Thrown when the store is unreachable, full, locked for too long, broken or closed. Whether a write took effect is then unknown.
 */
export class RecordsUnavailable extends Error {
  override readonly name = "RecordsUnavailable";
}

/** The port of records. */
export const records: Port<Records> = definePort<Records>("records");
