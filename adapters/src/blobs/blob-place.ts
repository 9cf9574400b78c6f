/**
 * The storage of blobs. Keys are already checked. Errors other than the port's own may be of any kind; only drafts throw
 * BlobExists. A signal ends a wait, which rejects with its reason; a storage that never waits long may ignore it. Closing comes
 * last: by then every draft, open blob and key listing has ended.
 */
export interface BlobPlace {
  /** Begin a blob that is not visible yet. The signal ends its writing, but not its placing or discarding. */
  draft(key: string, signal: AbortSignal): Promise<BlobDraft>;
  find(key: string, signal: AbortSignal): Promise<{ readonly size: number; readonly modifiedAt: number } | undefined>;
  /**
   * The wanted range is not checked yet. If it is within the blob, exactly this range is read, from start to end. Any of the
   * signals ends the wait. They are not combined into one, because that costs more than a storage needs that does not wait.
   */
  open(key: string, wanted: WantedBytes, signals: readonly AbortSignal[]): Promise<BlobBytes | undefined>;
  remove(key: string, signal: AbortSignal): Promise<boolean>;
  /** Only for storages whose blobs are plain files: the file's path below the storage's folder. */
  locate?(key: string): Promise<{ readonly size: number; readonly path: string } | undefined>;
  /**
   * Keys that begin with the prefix. Names that are not valid keys may be among them. A caller that stops early calls `return`.
   */
  keys(prefix: string, signal: AbortSignal): AsyncGenerator<string, void>;
  close(): unknown;
}

/** First and last byte, as the caller requested them. */
export interface WantedBytes {
  readonly start?: number | undefined;
  readonly end?: number | undefined;
}

/** A blob being written. It ends with either `place` or `discard`. After a `place` that threw, `discard` is called. */
export interface BlobDraft {
  /** Store a chunk. Its buffer belongs to the caller again once this resolves. Called for one chunk at a time. */
  write(chunk: Uint8Array): Promise<void>;
  /** Make it the key's blob, atomically and durably. Throws BlobExists if `ifAbsent` is set and the key exists. */
  place(ifAbsent: boolean, signal: AbortSignal): Promise<void>;
  /** Remove all traces of the draft. */
  discard(): Promise<void>;
}

/** The bytes that a blob had when it was opened, even if its key changes later. */
export interface BlobBytes {
  readonly size: number;
  /** Reads up to `length` bytes from a position, into new memory. Fewer than one byte at the end of the blob. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}
