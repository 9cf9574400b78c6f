/** A request of a work that can be answered now. */
export interface Answerable {
  /** The name under which its turn is stored. */
  readonly key: string;
  /** The number of the signal that answers it. */
  readonly signal?: number | undefined;
  /** The time that answers it. */
  readonly until?: number | undefined;
}

interface Held {
  readonly rank: readonly [group: number, within: number];
  go(): void;
}

/** The state of all requests of a work when it was parked, by key. */
export interface Asking {
  /** In the order of the answers. */
  readonly answered: readonly string[];
  readonly waiting: readonly string[];
}

/**
 * When a work is executed again, all its answers are available at once. This class releases them in their original order, so that
 * a race has the same winner as before. It releases one answer per turn of the event loop, after the work has made the requests
 * that follow from the previous answer. Requests that still waited come after these: signals in order of arrival, then times in
 * order. New requests have no order. A request that the work does not repeat is not waited for.
 */
export class ReplayOrder {
  readonly #ranks: Map<string, number>;
  readonly #waiting: ReadonlySet<string>;
  readonly #held: Held[] = [];

  constructor({ answered, waiting }: Asking) {
    this.#ranks = new Map(answered.map((key, at) => [key, at]));
    this.#waiting = new Set(waiting);
  }

  /** Whether it was requested before. */
  has(key: string): boolean {
    return this.#ranks.has(key) || this.#waiting.has(key);
  }

  /** Resolves when its turn has come. */
  turn(answerable: Answerable): Promise<void> {
    return new Promise((go) => {
      if (this.#held.push({ rank: this.#rankOf(answerable), go }) === 1) this.#letGoLater();
    });
  }

  #rankOf({ key, signal, until }: Answerable): Held["rank"] {
    const rank = this.#ranks.get(key);
    if (rank !== undefined) return [0, rank];
    if (signal !== undefined) return [1, signal];
    return until === undefined ? [3, 0] : [2, until];
  }

  #letGoLater(): void {
    setImmediate(() => {
      const first = this.#held.reduce((least, held) => (isBefore(held.rank, least.rank) ? held : least));
      this.#held.splice(this.#held.indexOf(first), 1);
      first.go();
      if (this.#held.length > 0) this.#letGoLater();
    });
  }
}

function isBefore(rank: Held["rank"], other: Held["rank"]): boolean {
  return rank[0] === other[0] ? rank[1] < other[1] : rank[0] < other[0];
}
