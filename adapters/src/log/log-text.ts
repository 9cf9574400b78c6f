import { ports } from "@portico/core";
import { isRecordId } from "../records/record-text.ts";

/** The port's rule for stream names: 1-512 well-formed characters without U+0000. Throws TypeError. */
export function checkStream(stream: string): string {
  if (isRecordId(stream)) return stream;
  throw new TypeError("A stream's name is 1-512 well-formed characters without U+0000");
}

/**
 * An entry as JSON. Throws TypeError if it is not a JSON object, LogEntryTooLarge if it is too large. Neither message contains
 * the entry.
 */
export function toEntryText(entry: object): string {
  const text = toJson(entry);
  if (!text?.startsWith("{")) throw new TypeError("An entry of a log must be a JSON object");
  // Most entries are small: one character takes at most three bytes.
  if (text.length > ports.LOG_ENTRY_BYTES / 3 && Buffer.byteLength(text) > ports.LOG_ENTRY_BYTES) {
    throw new ports.LogEntryTooLarge(`An entry of a log has at most ${ports.LOG_ENTRY_BYTES} bytes`);
  }
  return text;
}

/** A stored entry as a reader gets it. `text` is undefined for an entry that is too large to be read. */
export function toLogEntry(sequence: number, text: string | undefined): ports.LogEntry {
  try {
    const entry: unknown = JSON.parse(text!);
    if (typeof entry === "object" && entry !== null && !Array.isArray(entry)) {
      return { sequence, entry: entry as Readonly<Record<string, unknown>>, damaged: false };
    }
  } catch {
    // Handled below.
  }
  return { sequence, damaged: true };
}

function toJson(entry: object): string | undefined {
  try {
    return JSON.stringify(entry);
  } catch {
    // Without its cause: a message of `toJSON` may quote the value.
    throw new TypeError("An entry of a log is not JSON");
  }
}
