import { definePort, type Port } from "../grammar/port.ts";
import type { Write } from "./records.ts";

/**
 * Append-only streams of JSON entries: receipts, conversation messages, run events. An entry is durable when its promise
 * resolves. Entries never change. A stream is only removed as a whole, and single entries are only erased.
 */
export interface EventLog {
  /** Append one entry. Its sequence number is one more than the newest of the stream, starting at 1. Throws LogUnavailable. */
  append(stream: string, entry: object): Promise<number>;
  /**
   * Append several entries atomically, also to several streams. Returns their sequence numbers, in order. If the log and the
   * records share a store, `records` are written in the same commit; otherwise before the entries. Throws RecordConflict, and
   * then nothing was appended.
   */
  appendAll(
    entries: readonly { readonly stream: string; readonly entry: object }[],
    options?: { readonly records?: readonly Write[] },
  ): Promise<readonly number[]>;
  /**
   * Entries in the order of their sequence, or in reverse. A damaged or oversized entry is yielded as damaged and never ends the
   * reading. Reading holds at most a page in memory. A stream that does not exist is empty.
   */
  read(stream: string, options?: ReadOptions): AsyncIterable<LogEntry>;
  /** Number of entries, including damaged ones. */
  count(stream: string): Promise<number>;
  /** Remove a stream with all its entries. True if the stream existed. Sequence numbers start again after that. */
  remove(stream: string): Promise<boolean>;
  /**
   * Erase the content of entries, for example after their retention time. They keep their positions, count as before, and are read as
   * damaged. Entries that do not exist are ignored. Durable when it resolves.
   */
  erase(stream: string, sequences: readonly number[]): Promise<void>;
}

/** Which entries of a stream are read, and in which direction. */
export interface ReadOptions {
  /** First sequence number to yield, inclusive, in either direction. Default: the first entry in that direction. */
  readonly from?: number;
  /** Maximum entries to yield, including damaged ones. Default: all. */
  readonly limit?: number;
  readonly backwards?: boolean;
  readonly signal?: AbortSignal;
}

/** One entry of a stream. A damaged entry keeps its position and has no content. */
export type LogEntry =
  | { readonly sequence: number; readonly entry: Readonly<Record<string, unknown>>; readonly damaged: false }
  | { readonly sequence: number; readonly damaged: true };

/**
 * An entry with more bytes of JSON than this is refused with LogEntryTooLarge. A stored entry of that size is yielded as damaged.
 */
export const LOG_ENTRY_BYTES = 16 * 1024 * 1024;

/** Thrown by `append` for an entry over LOG_ENTRY_BYTES. */
export class LogEntryTooLarge extends Error {
  override readonly name = "LogEntryTooLarge";
}

/** Thrown when the log is unreachable, full, or broken. */
export class LogUnavailable extends Error {
  override readonly name = "LogUnavailable";
}

/** The port of the log. */
export const log: Port<EventLog> = definePort<EventLog>("log");
