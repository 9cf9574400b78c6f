import type { ModelEvent } from "./model-events.ts";

/** Reads an upstream's event stream as its bytes arrive. Never throws: faults of the stream become an `error` event. */
export interface StreamReader {
  /**
   * Takes the next bytes, which may be cut anywhere, and returns the events that they complete. After a `finish` or an `error` it returns
   * no further events.
   */
  push(chunk: Uint8Array): readonly ModelEvent[];
  /** Call it when the upstream has ended. Returns the remaining events, and an `error` if the answer is incomplete. */
  end(): readonly ModelEvent[];
}

/** Writes the caller's event stream. The text follows the protocol's grammar for any order of events. */
export interface StreamWriter {
  /** The text of these events. Empty if the events produce no text, or if the stream has ended. */
  write(events: readonly ModelEvent[]): string;
  /** A keep-alive. It may be sent between two results of `write` until the stream's end. */
  readonly keepAlive: string;
}
