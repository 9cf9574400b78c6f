/**
 * The storage of documents. Names are already checked. Calls for one name are sequential. Errors other than the port's own may be
 * of any kind.
 */
export interface DocumentPlace {
  /** Whether the storage takes no writes. Default: false. */
  readonly isReadOnly?: boolean;
  /** The text. Undefined for a missing document. */
  read(name: string): Promise<string | undefined>;
  /**
   * Replace the document. `check` gets the current text at the last moment. If it throws, its error is thrown and nothing is
   * written.
   */
  replace(name: string, text: string, check: CheckCurrent): Promise<void>;
  /** Remove a document, after `check` as in `replace`. */
  remove(name: string, check: CheckCurrent): Promise<void>;
  /** All names, in any order. Invalid document names may be among them. */
  list(): Promise<readonly string[]>;
  /** Differs once the document has changed. Undefined for a missing document. Cheaper than reading if the storage allows it. */
  fingerprint(name: string): Promise<string | undefined>;
  /** All names with their fingerprints. Left out by storages that need as many calls as there are documents. */
  fingerprints?(): Promise<ReadonlyMap<string, string>>;
  /**
   * Calls `hint` with a name that may have changed, or without a name if any document may have. Resolves when it sees changes,
   * with a function that ends it. Left out by storages that cannot report changes.
   */
  watch?(hint: (name?: string) => void): Promise<() => unknown>;
  close?(): unknown;
}

/** Throws if the document is not the one that the writer expects. Undefined means a missing document. */
export type CheckCurrent = (current: string | undefined) => void;
