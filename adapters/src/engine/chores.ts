import type { ports } from "@portico/core";
import { checkName } from "./work-text.ts";

/** A defined chore. */
export interface Chore {
  readonly name: string;
  readonly everyMs: number;
  readonly firstMs: number;
  run(signal: AbortSignal): Promise<void>;
}

/** The chores that an engine was told of, by name. */
export type ChoreTable = ReadonlyMap<string, Chore>;

/** Check a definition. Throws TypeError for an invalid name, and RangeError for invalid times. */
export function createChore(name: string, { everyMs, firstMs = 0 }: ports.ChoreOptions, run: Chore["run"]): Chore {
  checkName("The name of a chore", name);
  if (!(everyMs > 0) || !Number.isFinite(everyMs)) throw new RangeError("everyMs is a number of milliseconds above 0");
  if (!(firstMs >= 0) || !Number.isFinite(firstMs)) throw new RangeError("firstMs is a number of milliseconds from 0");
  return { name, everyMs, firstMs, run };
}

/** Run a chore once. Logs its error. */
export async function runChore({ name, run }: Chore, signal: AbortSignal, log: ports.Log): Promise<void> {
  try {
    await run(signal);
  } catch (error) {
    if (!signal.aborted) log.error("A chore failed, and runs again at its next time", { chore: name }, error);
  }
}

/** Runs chores in the only process that executes: each with its own timer. */
export class TimedChores {
  readonly #clock: ports.Clock;
  readonly #log: ports.Log;
  readonly #stopping = new AbortController();
  readonly #timers = new Map<string, ports.Timer>();
  readonly #running = new Set<Promise<void>>();

  constructor({ clock, log }: { readonly clock: ports.Clock; readonly log: ports.Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  begin(chores: ChoreTable): void {
    for (const chore of chores.values()) {
      if (chore.firstMs > 0) this.#after(chore.firstMs, chore);
      else this.#run(chore);
    }
  }

  /** Run no more. Resolves when the running ones have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const timer of this.#timers.values()) timer.cancel();
    await Promise.all(this.#running);
  }

  #after(ms: number, chore: Chore): void {
    if (this.#stopping.signal.aborted) return;
    const timer = this.#clock.after(ms, () => this.#run(chore));
    this.#timers.set(chore.name, timer);
  }

  #run(chore: Chore): void {
    const running = runChore(chore, this.#stopping.signal, this.#log).then(() => {
      this.#running.delete(running);
      this.#after(chore.everyMs, chore);
    });
    this.#running.add(running);
  }
}
