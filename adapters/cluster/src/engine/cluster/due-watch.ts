import type { ports } from "@portico/core";
import type { WakeUps } from "@portico/adapters/engine/wake-ups";
import type { ClusterJournal } from "./cluster-journal.ts";
import type { Offer } from "./work-row.ts";

/** The dependencies of a due watch. */
export interface DueWatchGiven {
  readonly journal: Pick<ClusterJournal, "bringBack" | "nextDue">;
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  offer(offers: readonly Offer[]): void;
}

/** The process that parked a work brings it back. Others give it this time. */
const OTHERS_MS = 250;

/** Brings parked work back into its queue when it is due. One timer, for the earliest, serves any amount of work. */
export class DueWatch {
  readonly #given: DueWatchGiven;
  /** Time of the next check. Work that is due earlier is handled by it. */
  #at = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #isStopped = false;

  constructor(given: DueWatchGiven) {
    this.#given = given;
  }

  /** Watch the work of all processes. Rejects if the journal is unavailable: call it again later. */
  async look(): Promise<void> {
    const next = await this.#given.journal.nextDue();
    if (next !== undefined) this.expect(Math.max(next, this.#given.clock.now()) + OTHERS_MS * (1 + Math.random()));
  }

  /** Work was parked here, and is due at this time. */
  expect(at: number | undefined): void {
    if (this.#isStopped || at === undefined || at >= this.#at) return;
    const { clock, wakeUps } = this.#given;
    this.#cancel?.();
    this.#at = at;
    if (at <= clock.now()) void this.#bringBack();
    else this.#cancel = wakeUps.add(at, () => void this.#bringBack());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  async #bringBack(): Promise<void> {
    const { journal, clock, offer } = this.#given;
    this.#at = Number.POSITIVE_INFINITY;
    try {
      for (let isMore = true; isMore && !this.#isStopped;) {
        const offers = await journal.bringBack(clock.now());
        isMore = offers.length > 0;
        offer(offers);
      }
      // The work that is due next may have been parked here.
      this.expect(await journal.nextDue());
    } catch {
      // The journal is unavailable. The next look finds what is due.
    }
  }
}
