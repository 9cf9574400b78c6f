/** Where documents lie. Names were checked; calls for one name come one after another. Errors that are no port's own may be of any kind. */
export interface DocumentPlace {
  /** The text; undefined where there is none. */
  read(name: string): Promise<string | undefined>;
  /** Put a text in place of what is there. `check` sees that at the last moment; what it throws is thrown, and nothing is written. */
  replace(name: string, text: string, check: CheckCurrent): Promise<void>;
  /** Take a document away, after `check` like `replace`. */
  remove(name: string, check: CheckCurrent): Promise<void>;
  /** All names, in any order; also what is no document's name. */
  list(): Promise<readonly string[]>;
  /** Differs once the document has changed; undefined where there is none. Cheaper than reading where the place can tell. */
  fingerprint(name: string): Promise<string | undefined>;
  /**
   * Calls `hint` with a name that may have changed, or with nothing where any may have. Resolves when it sees changes, to what ends it.
   * Left out by places that cannot tell.
   */
  watch?(hint: (name?: string) => void): Promise<() => unknown>;
  close?(): unknown;
}

export type CheckCurrent = (current: string | undefined) => void;
