import type { ports } from "@portico/core";
import { checkStream, toEntryText, toLogEntry } from "./log-text.ts";
import { type ReadPlan, toReadPlan } from "./read-options.ts";

/** An entry that was checked. */
export interface CheckedEntry {
  readonly stream: string;
  readonly text: string;
}

/** A stored entry. `text` is undefined if it exceeds the maximum size. */
export interface StoredEntry {
  readonly sequence: number;
  readonly text: string | undefined;
}

/** The part of the log that depends on the technology. All functions throw the port's errors. */
export interface LogBackend {
  append(entries: readonly CheckedEntry[], records: readonly ports.Write[]): Promise<readonly number[]>;
  /**
   * Entries from a sequence number on, inclusive and in the plan's direction. Undefined starts at the first entry in that
   * direction. At most `limit`, and only as many as fit well into memory. An empty page is the end.
   */
  page(
    stream: string,
    from: number | undefined,
    limit: number,
    backwards: boolean,
  ): readonly StoredEntry[] | Promise<readonly StoredEntry[]>;
  count(stream: string): number | Promise<number>;
  remove(stream: string): Promise<boolean>;
  /** Replaces the text of entries by an empty text. */
  erase(stream: string, sequences: readonly number[]): Promise<void>;
}

/** The log port over a backend. */
export function createLog(backend: LogBackend): ports.EventLog {
  return {
    async append(stream, entry) {
      const [sequence] = await backend.append([{ stream: checkStream(stream), text: toEntryText(entry) }], []);
      return sequence!;
    },
    async appendAll(entries, { records = [] } = {}) {
      return backend.append(
        entries.map(({ stream, entry }) => ({ stream: checkStream(stream), text: toEntryText(entry) })),
        records,
      );
    },
    read(stream, options) {
      return readPages(backend, checkStream(stream), toReadPlan(options));
    },
    count: async (stream) => backend.count(checkStream(stream)),
    remove: async (stream) => backend.remove(checkStream(stream)),
    erase: async (stream, sequences) => backend.erase(checkStream(stream), sequences.filter(isSequence)),
  };
}

function isSequence(sequence: number): boolean {
  return Number.isSafeInteger(sequence) && sequence >= 1;
}

async function* readPages(backend: LogBackend, stream: string, plan: ReadPlan): AsyncGenerator<ports.LogEntry> {
  let { from } = plan;
  for (let left = plan.limit; left > 0;) {
    plan.signal?.throwIfAborted();
    const page = await backend.page(stream, from, left, plan.backwards);
    for (const { sequence, text } of page) {
      plan.signal?.throwIfAborted();
      yield toLogEntry(sequence, text);
    }
    const last = page.at(-1);
    if (!last || (plan.backwards && last.sequence === 1)) return;
    left -= page.length;
    from = last.sequence + (plan.backwards ? -1 : 1);
  }
}
