/** One kind of load on a cluster, and what must hold of it. */
export interface Load {
  readonly name: string;
  /** Creates items until the signal aborts. Resolves when every client knows what became of its items. */
  run(signal: AbortSignal): Promise<void>;
  /** The items whose clients wait for something. */
  open(): readonly string[];
  /** Called when everything is at rest. */
  verify(): Promise<Findings>;
}

/** What a load found in the end. */
export interface Findings {
  /** How many items had which fate. */
  readonly counts: Readonly<Record<string, number>>;
  /** A sentence for everything that does not hold. */
  readonly wrong: readonly string[];
}

/** Collects the findings of a load. */
export class Report implements Findings {
  readonly counts: Record<string, number> = {};
  readonly wrong: string[] = [];

  count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  expect(holds: boolean, otherwise: string): void {
    if (!holds) this.wrong.push(otherwise);
  }
}

/** The items of a load whose clients wait. */
export class OpenItems {
  readonly #items = new Set<string>();

  async during<T>(item: string, work: () => Promise<T>): Promise<T> {
    this.#items.add(item);
    try {
      return await work();
    } finally {
      this.#items.delete(item);
    }
  }

  list(): readonly string[] {
    return [...this.#items];
  }
}

/** Repeats work in several clients at the same time, until the signal aborts. */
export async function repeat(clients: number, signal: AbortSignal, work: (client: number) => Promise<void>): Promise<void> {
  const client = async (_: unknown, at: number) => {
    while (!signal.aborted) await work(at);
  };
  await Promise.all(Array.from({ length: clients }, client));
}
