import type { ports } from "@portico/core";

/** A record whose present content is still to be written. */
export interface ChangedRow {
  write(): ports.Write;
}

/** Options of `GroupedWrites`. */
export interface GroupedWritesOptions {
  readonly records: ports.Records;
  readonly clock: ports.Clock;
  /** A changed row is written within this time. */
  readonly flushMs: number;
  /** Called for the first failure after a success. The rows are written again. */
  readonly failed: (error: unknown) => void;
}

const WRITES_AT_ONCE = 500;

/** Writes rows that change often: changes of one moment share a commit, and a row that changes again meanwhile is written once. */
export class GroupedWrites {
  readonly #given: GroupedWritesOptions;
  readonly #changed = new Set<ChangedRow>();
  #timer: ports.Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #hasFailed = false;
  #isClosed = false;

  constructor(given: GroupedWritesOptions) {
    this.#given = given;
  }

  /** The rows have changed. */
  mark(rows: readonly ChangedRow[]): void {
    for (const row of rows) this.#changed.add(row);
    if (this.#isClosed) return;
    this.#timer ??= this.#given.clock.after(this.#given.flushMs, () => {
      this.#timer = undefined;
      this.write().catch((error: unknown) => {
        this.#tell(error);
        this.mark([]);
      });
    });
  }

  /** Resolves when all present changes are durable. Calls of one moment share a commit; a commit that has begun may lack the present. */
  write(): Promise<void> {
    this.#next ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#writing = this.#writeChanged();
        return this.#writing;
      });
    return this.#next;
  }

  /** Writes the last changes, and no later ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.write().catch((error: unknown) => this.#tell(error));
  }

  /** Writes what has changed until now. What changes meanwhile is the next write's: under load, this one would never end. */
  async #writeChanged(): Promise<void> {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (let from = 0; from < changed.length; from += WRITES_AT_ONCE) {
      const rows = changed.slice(from, from + WRITES_AT_ONCE);
      try {
        await this.#given.records.batch(rows.map((row) => row.write()));
        this.#hasFailed = false;
      } catch (error) {
        for (const row of changed.slice(from)) this.#changed.add(row);
        throw error;
      }
    }
  }

  #tell(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#given.failed(error);
  }
}
