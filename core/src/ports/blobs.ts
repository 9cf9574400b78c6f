import type { Readable } from "node:stream";
import { definePort, type Port } from "../port.ts";

/**
 * Bytes of any length under keys: attachments, media. They only ever stream, so that memory does not grow with them. Every function
 * throws TypeError for a key that is none (`isBlobKey`), and BlobsUnavailable.
 */
export interface Blobs {
  /**
   * Store what the source gives, in place of what the key held: readers that have the old bytes open keep reading those. Whole and
   * durable when it resolves. Nothing is stored, and what was there stays, when it rejects with what the source throws, with the signal's
   * reason, with BlobTooLarge or BlobExists; after BlobsUnavailable the old one is there or the new one, whole. A chunk is asked for when
   * the one before is stored, and may be reused then. A source that is not read to its end is destroyed, if it is a Node stream, and told
   * `return` otherwise.
   */
  put(key: string, source: BlobSource, options: PutBlobOptions): Promise<StoredBlob>;
  /** Undefined where there is none. */
  stat(key: string): Promise<BlobStat | undefined>;
  /**
   * Read a blob, or a range of it; undefined where there is none. Throws RangeError for a range that is not within the blob. The stream
   * holds its blob open until it has ended or is destroyed, and fails rather than end early.
   */
  open(key: string, options?: OpenBlobOptions): Promise<OpenBlob | undefined>;
  /** True if there was one, and then it is gone durably. Readers that have it open keep reading. */
  remove(key: string): Promise<boolean>;
  /**
   * The keys that begin with `prefix`, in no order, held a page at a time. What is there all the while comes once; what comes or goes
   * meanwhile may come. Throws TypeError for a prefix that no key can begin with.
   */
  keys(prefix?: string, signal?: AbortSignal): AsyncIterable<string>;
}

export type BlobSource = Readable | AsyncIterable<Uint8Array>;

export interface PutBlobOptions {
  /** Most bytes to take, inclusive; any number from 0 on, or RangeError is thrown. */
  readonly maxBytes: number;
  /** Throw BlobExists, and store nothing, where the key holds something. Of several that put one key at once, one succeeds. */
  readonly ifAbsent?: boolean;
  readonly signal?: AbortSignal;
}

export interface StoredBlob {
  readonly size: number;
  /** Of the bytes that were stored, in lowercase hex. */
  readonly sha256: string;
}

export interface BlobStat {
  readonly size: number;
  /** When it was put, in milliseconds since 1970, by the clock of the place. */
  readonly modifiedAt: number;
}

export interface OpenBlobOptions {
  /** Position of the first byte; default 0. */
  readonly start?: number;
  /** Position of the last byte, inclusive; default: the last one there is. */
  readonly end?: number;
  /** Destroys the stream when it aborts. */
  readonly signal?: AbortSignal;
}

export interface OpenBlob {
  /** Bytes of the whole blob, whatever range is read. */
  readonly size: number;
  /** Exactly the bytes that were asked for. */
  readonly stream: Readable;
}

const LONGEST_KEY = 512;
const SEGMENTS = /^[\w-][\w.-]{0,254}(?:\/[\w-][\w.-]{0,254})*$/;

/**
 * Whether a text can be a key: at most 512 characters in segments of 1-255, divided by `/`, of ASCII letters, digits, `_`, `-` and `.`,
 * none of which begins with a dot. Stores may take keys that differ only in case for one, and may refuse with BlobsUnavailable to hold
 * both `a` and `a/b`: use keys for which neither matters.
 */
export function isBlobKey(key: string): boolean {
  return typeof key === "string" && key.length <= LONGEST_KEY && SEGMENTS.test(key);
}

/** Thrown by `put` for a source of more than `maxBytes`. */
export class BlobTooLarge extends Error {
  override readonly name = "BlobTooLarge";
}

/** Thrown by `put` with `ifAbsent` where the key holds something. */
export class BlobExists extends Error {
  override readonly name = "BlobExists";
}

/** Thrown when the place cannot be read or written, is full, or is closed. */
export class BlobsUnavailable extends Error {
  override readonly name = "BlobsUnavailable";
}

export const blobs: Port<Blobs> = definePort<Blobs>("blobs");
