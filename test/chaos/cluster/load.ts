import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";

/** One kind of load on a cluster, and the rules that must hold. */
export interface Load {
  readonly name: string;
  /** Creates items until the signal aborts. Resolves when every client knows the results of its items. */
  run(signal: AbortSignal): Promise<void>;
  /** The items whose clients wait for something. */
  open(): readonly string[];
  /** Called when no item is in progress. */
  verify(): Promise<Findings>;
}

/** The findings of a load. */
export interface Findings {
  /** The number of items per result. */
  readonly counts: Readonly<Record<string, number>>;
  /** A sentence for every violated rule. */
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

/** Far longer than it takes: only a hang is later. */
export const REST_MS = 10 * 60_000;

/** Runs loads during a storm of faults, until each client knows what became of its items. */
export async function runLoads(loads: readonly Load[], storm: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const running = Promise.all(loads.map((load) => load.run(over.signal)));
  await Promise.race([running, storm()]);
  over.abort();
  const late = sleep(REST_MS, true, { ref: false });
  const isLate = await Promise.race([running.then(() => false), late]);
  expect(isLate && loads.flatMap((load) => load.open()), "clients that still wait").toBe(false);
}

/** Expects that all holds of the loads, after it told their counts, by name. */
export async function verifyLoads(
  loads: readonly Load[],
  tell: (counts: Record<string, Findings["counts"]>) => void,
): Promise<void> {
  const findings: Record<string, Findings> = {};
  for (const load of loads) findings[load.name] = await load.verify();
  const select = <K extends keyof Findings>(key: K) =>
    Object.fromEntries(Object.entries(findings).map(([name, each]) => [name, each[key]])) as Record<string, Findings[K]>;
  tell(select("counts"));
  expect.soft(select("wrong")).toEqual(Object.fromEntries(loads.map(({ name }) => [name, []])));
}
