import type { ports } from "@portico/core";
import type { WakeUps } from "./wake-ups.ts";

/** The dependencies of an idle watch. */
export interface IdleWatchOptions {
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  /** How long the work must be idle. */
  readonly afterMs: number;
  onIdle(): void;
}

/**
 * Notices that a work has only waited for some time. It uses at most one timer, which is set again if it fires too early.
 * Frequent events cost only an assignment.
 */
export class IdleWatch {
  readonly #options: IdleWatchOptions;
  /** When it will have been idle long enough. Undefined while it is not idle. */
  #at: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(options: IdleWatchOptions) {
    this.#options = options;
  }

  /** The work only waits from now on. The next event is at `until`, or earlier. */
  idle(until: number): void {
    this.#at = this.#options.clock.now() + this.#options.afterMs;
    if (until > this.#at) this.#arm(this.#at);
  }

  busy(): void {
    this.#at = undefined;
  }

  stop(): void {
    this.#at = undefined;
    this.#cancel?.();
  }

  #arm(at: number): void {
    this.#cancel ??= this.#options.wakeUps.add(at, () => {
      this.#cancel = undefined;
      if (this.#at === undefined) return;
      if (this.#at > this.#options.clock.now()) this.#arm(this.#at);
      else this.#options.onIdle();
    });
  }
}
