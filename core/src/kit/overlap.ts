import type { Clock, Timer } from "../ports/clock.ts";

/** Earlier values that are kept at most. Limits memory if values are replaced faster than they end. */
const MOST_EARLIER = 16;

/** Options of `Overlap`. */
export interface OverlapOptions<T> {
  readonly clock: Clock;
  /** Whether a replacement changes nothing. */
  readonly isSame: (one: T, other: T) => boolean;
  /** Called after values were added or have ended. */
  readonly changed?: () => void;
}

/** A value that is replaced now and then, and whose earlier values stay valid for a time: old and new tokens side by side. */
export class Overlap<T> {
  readonly #options: OverlapOptions<T>;
  #earlier: { readonly value: T; readonly endsAt: number; readonly timer: Timer }[] = [];
  #current: T;

  constructor(first: T, options: OverlapOptions<T>) {
    this.#current = first;
    this.#options = options;
  }

  get current(): T {
    return this.#current;
  }

  /** All valid values, the oldest first and the current one last. */
  get all(): readonly T[] {
    return [...this.#earlier.map(({ value }) => value), this.#current];
  }

  /** Replace the current value, which ends after `overlapMs`. Values that were replaced before end then at the latest, too. */
  replace(next: T, overlapMs: number): void {
    const { clock, isSame, changed } = this.#options;
    const replaced = isSame(this.#current, next) ? [] : [{ value: this.#current, endsAt: Number.POSITIVE_INFINITY }];
    const latest = clock.now() + overlapMs;
    const before = [...this.#earlier, ...replaced];
    for (const { timer } of this.#earlier) timer.cancel();
    this.#current = next;
    this.#earlier = before
      .slice(-MOST_EARLIER)
      .filter(() => overlapMs > 0)
      .map(({ value, endsAt }) => this.#ending(value, Math.min(endsAt, latest)));
    changed?.();
  }

  /** Cancel the timers. */
  close(): void {
    for (const { timer } of this.#earlier) timer.cancel();
  }

  #ending(value: T, endsAt: number) {
    const { clock, changed } = this.#options;
    const timer = clock.after(endsAt - clock.now(), () => {
      this.#earlier = this.#earlier.filter((each) => each.timer !== timer);
      changed?.();
    });
    return { value, endsAt, timer };
  }
}
