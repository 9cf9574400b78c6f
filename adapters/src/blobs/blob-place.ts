/**
 * Where blobs lie. Keys were checked. Errors that are no port's own may be of any kind; BlobExists is thrown by drafts alone. Closing
 * comes last: no draft, no open blob and no reading of keys is left then.
 */
export interface BlobPlace {
  /** Begin a blob that has no key yet and that nobody sees. */
  draft(): Promise<BlobDraft>;
  find(key: string): Promise<{ readonly size: number; readonly modifiedAt: number } | undefined>;
  open(key: string): Promise<BlobBytes | undefined>;
  remove(key: string): Promise<boolean>;
  /** Keys that begin with the prefix; also names that are no key. Whoever stops early returns. */
  keys(prefix: string): AsyncGenerator<string, void>;
  close(): unknown;
}

/** A blob while it is written. It ends with one of `place` and `discard`; a `place` that threw is followed by `discard`. */
export interface BlobDraft {
  /** Store a chunk, which is the caller's again once this resolves. One at a time. */
  write(chunk: Uint8Array): Promise<void>;
  /** Make it the key's blob, in one step and durably. Throws BlobExists where only an absent one was to be made. */
  place(key: string, ifAbsent: boolean): Promise<void>;
  /** Leave nothing behind. */
  discard(): Promise<void>;
}

/** The bytes that a blob had when it was opened, whatever becomes of its key. */
export interface BlobBytes {
  readonly size: number;
  /** Up to so many bytes from a position on, in memory of the caller's own; fewer than one where there are none any more. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}
