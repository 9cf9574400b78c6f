import type { ports } from "@portico/core";
import type { WakeUps } from "./wake-ups.ts";

export interface IdleWatchOptions {
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  /** For how long nothing has to happen. */
  readonly afterMs: number;
  onIdle(): void;
}

/**
 * Notices that a work has done nothing but wait for a while. It has one wake-up at most, which is set again when it comes too early: what
 * happens often costs no more than to write down when.
 */
export class IdleWatch {
  readonly #options: IdleWatchOptions;
  /** When it will have been idle for long enough; undefined while it is not. */
  #at: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(options: IdleWatchOptions) {
    this.#options = options;
  }

  /** It only waits, from now on; at `until`, if not before, something will happen. */
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
