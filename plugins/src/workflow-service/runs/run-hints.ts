import type { ports } from "@portico/core";
import type { LedgerListener } from "./ledger.ts";

/** How long an entry waits before it is written, so that other processes see it. Until then, further entries join it. */
const WRITE_AFTER_MS = 250;

/** Hints may be lost. Then a run is read again after this time. */
const LOOK_AGAIN_MS = 3000;

/** Messages to other processes about runs that this process executes. They may be lost, because all of their facts are in stores. */
export class RunHints {
  readonly #bus: ports.Bus;
  readonly #clock: ports.Clock;

  constructor(bus: ports.Bus, clock: ports.Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /** Writes a ledger soon after entries were added, and notifies other processes when its log has more entries. */
  listener(runId: string, write: () => Promise<void>): LedgerListener {
    let timer: ports.Timer | undefined;
    return {
      added: () => {
        timer ??= this.#clock.after(WRITE_AFTER_MS, () => {
          timer = undefined;
          // If it fails, the entries are written with later ones, at the latest at the end of the execution.
          write().catch(() => {});
        });
      },
      written: () => {
        timer?.cancel();
        timer = undefined;
        this.notify(runId);
      },
    };
  }

  /** The log or the record of a run has changed. */
  notify(runId: string): void {
    this.#bus.publish(topicOf(runId), {});
  }

  /**
   * Calls `changed` when a run may have changed, one call at a time, until the signal aborts. If `changed` fails, it is called again
   * later.
   */
  async watch(runId: string, signal: AbortSignal, changed: () => Promise<void>): Promise<void> {
    let wake = (): void => {};
    let hasNews = true;
    const hear = (): void => {
      hasNews = true;
      wake();
    };
    const subscription = this.#bus.subscribe(topicOf(runId), { received: hear, missed: hear });
    // Entries that were written before were not reported.
    void subscription.active.then(hear);
    signal.addEventListener("abort", hear, { once: true });
    try {
      while (!signal.aborted) {
        if (hasNews) {
          hasNews = false;
          await changed().catch(() => {});
          continue;
        }
        const timer = this.#clock.after(LOOK_AGAIN_MS, hear);
        await new Promise<void>((resolve) => (wake = resolve));
        timer.cancel();
      }
    } finally {
      signal.removeEventListener("abort", hear);
      subscription.close();
    }
  }

  /**
   * One reader at a time follows the events of a run (specification 6.1): this one ends earlier readers in other processes, and `takenOver` is
   * called when a later one begins.
   */
  read(runId: string, since: ReaderMark, takenOver: () => void): ports.BusSubscription {
    const topic = `${topicOf(runId)}/reader`;
    const announce = (): void => this.#bus.publish(topic, since);
    const received = (message: unknown): void => {
      const other = message as ReaderMark;
      if (isLater(other, since)) takenOver();
      // The earlier reader was subscribed too late to hear of this one.
      else if (isLater(since, other)) announce();
    };
    const subscription = this.#bus.subscribe(topic, { received, missed: announce });
    void subscription.active.then((isActive) => isActive && announce());
    return subscription;
  }
}

/** When a reader began; `id` decides between readers of the same millisecond. */
export interface ReaderMark {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
}

function isLater(other: ReaderMark, own: ReaderMark): boolean {
  return other.at > own.at || (other.at === own.at && other.id > own.id);
}

function topicOf(runId: string): string {
  return `workflow-service/run/${runId}`;
}
