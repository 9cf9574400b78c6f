import type { ports } from "@portico/core";
import type { Journal, Place } from "./journal.ts";
import type { WakeUps } from "./wake-ups.ts";

/** How many works one commit brings back. Limits how long the event loop is blocked. */
const BROUGHT_BACK_AT_ONCE = 200;

/** The dependencies of DueWork. */
export interface DueWorkOptions {
  readonly journal: Pick<Journal, "bringBack" | "nextDue">;
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  /** Retry a call to the journal while it is unavailable. */
  insist<T>(ask: () => Promise<T>): Promise<T>;
  add(places: readonly Place[]): void;
  onFailed(error: unknown): void;
}

/** Brings parked work back into its queue when it is due. One timer, for the earliest, serves any amount of work. */
export class DueWork {
  readonly #options: DueWorkOptions;
  /** Time of the next check. It also finds work that is due later, and sets the time of the check after it. */
  #at = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(options: DueWorkOptions) {
    this.#options = options;
  }

  /** Ask the journal when work is due next, and handle it then. Never rejects. */
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

  /** Work was parked, and is due at this time. */
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
    // The check that follows sees work that is parked meanwhile.
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
