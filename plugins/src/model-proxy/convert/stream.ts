import type { ModelEvent } from "./model-events.ts";

/** Reads an upstream's event stream as its bytes arrive. Never throws: what is wrong with the stream becomes an `error` event. */
export interface StreamReader {
  /**
   * Takes the next bytes, cut anywhere, and gives the events that they complete. After a `finish` or an `error` it gives nothing
   * more.
   */
  push(chunk: Uint8Array): readonly ModelEvent[];
  /** The upstream ended: gives what was still held back, and an `error` if the answer was cut short. */
  end(): readonly ModelEvent[];
}

/** Writes the caller's event stream. Whatever order the events come in, the text obeys the protocol's grammar. */
export interface StreamWriter {
  /** The text of these events, empty where they have none of their own or nothing may follow any more. */
  write(events: readonly ModelEvent[]): string;
  /** A sign of life without meaning, allowed between two results of `write` until the stream's end. */
  readonly keepAlive: string;
}
