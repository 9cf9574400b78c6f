/** Something that a work asked for and that could be answered now. */
export interface Answerable {
  /** The name under which its turn is remembered. */
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

/** What had become of what a work asked for, when it was parked: by key. */
export interface Asking {
  /** The first first. */
  readonly answered: readonly string[];
  readonly waiting: readonly string[];
}

/**
 * Lets a work that is executed again have its answers in the order in which it had them, though all of them are there at once: a race is
 * won by who had won it. One is let go in each turn of the event loop, after the work has asked for all that the one before led to. What
 * it still waited for comes after it: signals as they came, then what was over first. What it asks for only now is in no order, and where
 * it does not ask for what it had asked for, nobody waits for that.
 */
export class ReplayOrder {
  readonly #ranks: Map<string, number>;
  readonly #waiting: ReadonlySet<string>;
  readonly #held: Held[] = [];

  constructor({ answered, waiting }: Asking) {
    this.#ranks = new Map(answered.map((key, at) => [key, at]));
    this.#waiting = new Set(waiting);
  }

  /** Whether it had been asked for. */
  has(key: string): boolean {
    return this.#ranks.has(key) || this.#waiting.has(key);
  }

  /** Resolves when it is this one's turn. */
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
