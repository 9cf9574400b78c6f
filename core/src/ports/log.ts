import { definePort, type Port } from "../port.ts";
import type { Write } from "./records.ts";

/**
 * Append-only streams of JSON entries: receipts, conversation messages, run events. An entry is durable when its promise resolves;
 * nothing is ever changed, and a stream is removed whole or not at all.
 */
export interface EventLog {
  /** Append one entry. Its sequence number is one more than the newest of the stream, beginning with 1. Throws LogUnavailable. */
  append(stream: string, entry: object): Promise<number>;
  /**
   * Several entries, also to several streams, that are there together or not at all. Answers their sequence numbers, in order. `records`
   * are written in the same commit where the log and the records share a store, and before the entries otherwise. Throws RecordConflict,
   * and then nothing was appended.
   */
  appendAll(
    entries: readonly { readonly stream: string; readonly entry: object }[],
    options?: { readonly records?: readonly Write[] },
  ): Promise<readonly number[]>;
  /**
   * Entries in the order of their sequence, or backwards. A damaged or oversized one is yielded as such and never ends the reading.
   * Reading holds at most a page in memory. A stream that does not exist is empty.
   */
  read(stream: string, options?: ReadOptions): AsyncIterable<LogEntry>;
  /** How many entries there are, damaged ones included. */
  count(stream: string): Promise<number>;
  /** Remove a stream with all its entries; true if there was one. Sequence numbers begin anew after that. */
  remove(stream: string): Promise<boolean>;
}

export interface ReadOptions {
  /** First sequence number to yield, inclusive: reading goes on from there in either direction. Default: the end where reading begins. */
  readonly from?: number;
  /** Most entries to yield, damaged ones counted; default: all. */
  readonly limit?: number;
  readonly backwards?: boolean;
  readonly signal?: AbortSignal;
}

export type LogEntry =
  | { readonly sequence: number; readonly entry: Readonly<Record<string, unknown>>; readonly damaged: false }
  | { readonly sequence: number; readonly damaged: true };

/** An entry over this many bytes of JSON is refused with LogEntryTooLarge, and one found that large is yielded as damaged. */
export const LOG_ENTRY_BYTES = 16 * 1024 * 1024;

/** Thrown by `append` for an entry over LOG_ENTRY_BYTES. */
export class LogEntryTooLarge extends Error {
  override readonly name = "LogEntryTooLarge";
}

/** Thrown when the log cannot be reached, is full, or is broken. */
export class LogUnavailable extends Error {
  override readonly name = "LogUnavailable";
}

export const log: Port<EventLog> = definePort<EventLog>("log");
