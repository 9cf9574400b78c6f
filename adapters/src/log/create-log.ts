import type { ports } from "@portico/core";
import { checkStream, toEntryText, toLogEntry } from "./log-text.ts";
import { type ReadPlan, toReadPlan } from "./read-options.ts";

/** An entry that was checked. */
export interface CheckedEntry {
  readonly stream: string;
  readonly text: string;
}

/** A stored entry; `text` is undefined where it is larger than any that was ever taken. */
export interface StoredEntry {
  readonly sequence: number;
  readonly text: string | undefined;
}

/** What a technology has to do for the log. Everything throws what the port throws. */
export interface LogBackend {
  append(entries: readonly CheckedEntry[], records: readonly ports.Write[]): Promise<readonly number[]>;
  /**
   * Entries from a sequence number on, inclusive and in the plan's direction; undefined begins at its end of the stream. At most `limit`,
   * and no more than fit well into memory; an empty page is the end.
   */
  page(
    stream: string,
    from: number | undefined,
    limit: number,
    backwards: boolean,
  ): readonly StoredEntry[] | Promise<readonly StoredEntry[]>;
  count(stream: string): number | Promise<number>;
  remove(stream: string): Promise<boolean>;
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
  };
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
