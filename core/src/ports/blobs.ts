import type { Readable } from "node:stream";
import { definePort, type Port } from "../grammar/port.ts";

/**
 * Bytes of any length under keys: attachments, media. Blobs are always streamed, so that memory does not grow with their size.
 * Every function throws TypeError for an invalid key (`isBlobKey`), and BlobsUnavailable.
 */
export interface Blobs {
  /**
   * Store the bytes of the source, and replace the key's old bytes. Readers that have the old bytes open keep reading those. The
   * new bytes are complete and durable when it resolves. It rejects with the source's error, the signal's reason, BlobTooLarge or
   * BlobExists; then nothing is stored and the old bytes stay. After BlobsUnavailable, either the old or the new bytes are
   * stored, complete. A chunk is requested after the previous one was stored; its buffer may be reused then. A source that is not
   * read to its end is destroyed if it is a Node stream; on any other source, `return` is called.
   */
  put(key: string, source: BlobSource, options: PutBlobOptions): Promise<StoredBlob>;
  /** Undefined for a missing blob. */
  stat(key: string): Promise<BlobStat | undefined>;
  /**
   * Read a blob, or a range of it. Undefined for a missing blob. Throws RangeError for a range outside of the blob. The stream
   * holds its blob open until it has ended or is destroyed. It fails if the blob is shorter than expected.
   */
  open(key: string, options?: OpenBlobOptions): Promise<OpenBlob | undefined>;
  /** True if the blob existed; its removal is then durable. Readers that have it open keep reading. */
  remove(key: string): Promise<boolean>;
  /**
   * The keys that begin with `prefix`, in no particular order. At most a page is held in memory. A key that exists during the
   * whole iteration occurs once. A key that is added or removed meanwhile may occur. Throws TypeError for a prefix that no valid
   * key begins with.
   */
  keys(prefix?: string, signal?: AbortSignal): AsyncIterable<string>;
  /**
   * Optional: only for storages whose blobs are plain files. Where the bytes of a blob are, so that a web server beside this
   * process can send them. Undefined for a missing blob.
   */
  locate?(key: string): Promise<LocatedBlob | undefined>;
}

/** Bytes to store. */
export type BlobSource = Readable | AsyncIterable<Uint8Array>;

/** Options of `put`. */
export interface PutBlobOptions {
  /** Maximum bytes to accept, inclusive. Any number from 0; otherwise RangeError is thrown. */
  readonly maxBytes: number;
  /** Throw BlobExists, and store nothing, if the key already exists. If several callers put one key at once, one succeeds. */
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

/** The result of `put`. */
export interface StoredBlob {
  readonly size: number;
  /** SHA-256 of the stored bytes, in lowercase hex. */
  readonly sha256: string;
}

/** Facts about a blob, without reading it. */
export interface BlobStat {
  readonly size: number;
  /** When it was stored, in milliseconds since 1970, by the clock of the storage. */
  readonly modifiedAt: number;
}

/** A blob that is a file with exactly the blob's bytes. */
export interface LocatedBlob {
  readonly size: number;
  /** The file's path below the folder of the storage: segments like a key's, separated by `/`. */
  readonly path: string;
}

/** Options of `open`: without a range, the whole blob. */
export interface OpenBlobOptions {
  /** Position of the first byte; default 0. */
  readonly start?: number;
  /** Position of the last byte, inclusive. Default: the last byte of the blob. */
  readonly end?: number;
  /** Destroys the stream when it aborts. */
  readonly signal?: AbortSignal;
}

/** An open blob. */
export interface OpenBlob {
  /** Bytes of the whole blob, also when a range is read. */
  readonly size: number;
  /** Exactly the requested bytes. */
  readonly stream: Readable;
}

const LONGEST_KEY = 512;
const SEGMENTS = /^[\w-][\w.-]{0,254}(?:\/[\w-][\w.-]{0,254})*$/;

/**
 * Whether a text is a valid key: at most 512 characters, in segments of 1-255 that are separated by `/`, of ASCII letters,
 * digits, `_`, `-` and `.`. No segment begins with a dot. Stores may treat keys that differ only in case as equal, and may refuse
 * with BlobsUnavailable to hold both `a` and `a/b`: choose keys for which neither matters.
 */
export function isBlobKey(key: string): boolean {
  return typeof key === "string" && key.length <= LONGEST_KEY && SEGMENTS.test(key);
}

/** Thrown by `put` for a source of more than `maxBytes`. */
export class BlobTooLarge extends Error {
  override readonly name = "BlobTooLarge";
}

/** Thrown by `put` with `ifAbsent` if the key already exists. */
export class BlobExists extends Error {
  override readonly name = "BlobExists";
}

/** Thrown when the storage cannot be read or written, is full, or is closed. */
export class BlobsUnavailable extends Error {
  override readonly name = "BlobsUnavailable";
}

/** The port of blobs. */
export const blobs: Port<Blobs> = definePort<Blobs>("blobs");
