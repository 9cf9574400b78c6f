/**
 * Where blobs lie. Keys were checked. Errors that are no port's own may be of any kind; BlobExists is thrown by drafts alone. A signal
 * ends a wait, which rejects with its reason; a place that never waits for long need not look at it. Closing comes last: no draft, no
 * open blob and no reading of keys is left then.
 */
export interface BlobPlace {
  /** Begin a blob that nobody sees yet. The signal ends its writing, and neither its placing nor its discarding. */
  draft(key: string, signal: AbortSignal): Promise<BlobDraft>;
  find(key: string, signal: AbortSignal): Promise<{ readonly size: number; readonly modifiedAt: number } | undefined>;
  /**
   * What is wanted was not checked: where it is within the blob, it is all that will be read, and from its beginning to its end. Any of
   * the signals ends the wait: making one of them costs more than a place needs that does not wait.
   */
  open(key: string, wanted: WantedBytes, signals: readonly AbortSignal[]): Promise<BlobBytes | undefined>;
  remove(key: string, signal: AbortSignal): Promise<boolean>;
  /** Keys that begin with the prefix; also names that are no key. Whoever stops early returns. */
  keys(prefix: string, signal: AbortSignal): AsyncGenerator<string, void>;
  close(): unknown;
}

/** First and last byte, as somebody asked for them. */
export interface WantedBytes {
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

/** A blob while it is written. It ends with one of `place` and `discard`; a `place` that threw is followed by `discard`. */
export interface BlobDraft {
  /** Store a chunk, which is the caller's again once this resolves. One at a time. */
  write(chunk: Uint8Array): Promise<void>;
  /** Make it the key's blob, in one step and durably. Throws BlobExists where only an absent one was to be made. */
  place(ifAbsent: boolean, signal: AbortSignal): Promise<void>;
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
