import type { ports } from "@portico/core";
import type { Journal, Place } from "./journal.ts";
import type { WakeUps } from "./wake-ups.ts";

/** How many works one commit brings back, so that none holds the event loop for long. */
const BROUGHT_BACK_AT_ONCE = 200;

export interface DueWorkOptions {
  readonly journal: Pick<Journal, "bringBack" | "nextDue">;
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  /** Ask the journal again and again while it is out of reach. */
  insist<T>(ask: () => Promise<T>): Promise<T>;
  add(places: readonly Place[]): void;
  onFailed(error: unknown): void;
}

/** Brings parked work back into its line when it is due, with one wake-up for the first of it, however much there is. */
export class DueWork {
  readonly #options: DueWorkOptions;
  /** What is due before this is looked after. */
  #at = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: DueWorkOptions) {
    this.#options = options;
  }

  /** Look after what the journal has. Never rejects. */
  async look(): Promise<void> {
    const { journal, insist, onFailed } = this.#options;
    try {
      await insist(async () => {
        const next = journal.nextDue();
        this.#at = Number.POSITIVE_INFINITY;
        this.expect(next);
      });
    } catch (error) {
      onFailed(error);
    }
  }

  /** Work was parked, and is due then. */
  expect(at: number | undefined): void {
    if (at === undefined || at >= this.#at) return;
    const { clock, wakeUps } = this.#options;
    this.#cancel?.();
    this.#at = at;
    if (at <= clock.now()) void this.#bringBack();
    else this.#cancel = wakeUps.add(at, () => void this.#bringBack());
  }

  async #bringBack(): Promise<void> {
    const { journal, clock, insist, add, onFailed } = this.#options;
    // What is parked meanwhile is seen by the look that follows.
    this.#at = Number.NEGATIVE_INFINITY;
    try {
      let brought = BROUGHT_BACK_AT_ONCE;
      while (brought === BROUGHT_BACK_AT_ONCE) {
        const places = await insist(() => journal.bringBack(clock.now(), BROUGHT_BACK_AT_ONCE));
        add(places);
        brought = places.length;
      }
    } catch (error) {
      return onFailed(error);
    }
    await this.look();
  }
}
