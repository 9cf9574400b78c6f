import type { ports } from "@portico/core";

interface WakeUp {
  readonly at: number;
  /** Undefined after it was cancelled. */
  wake: (() => void) | undefined;
}

/** This many cancelled entries are never removed early. */
const FEW = 64;

/** Any number of wake-up times with one timer of the clock, for the earliest. */
export class WakeUps {
  readonly #clock: ports.Clock;
  /** A binary heap: no entry is later than its two children. Cancelled entries stay until there are many. */
  #heap: WakeUp[] = [];
  #cancelled = 0;
  #timer: ports.Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: ports.Clock) {
    this.#clock = clock;
  }

  /** Call `wake` once when the clock has reached `at`, never within this call. The returned function cancels it. */
  add(at: number, wake: () => void): () => void {
    const wakeUp: WakeUp = { at, wake };
    this.#heap.push(wakeUp);
    this.#rise(this.#heap.length - 1);
    this.#setTimer();
    return () => {
      if (!wakeUp.wake) return;
      wakeUp.wake = undefined;
      this.#cancelled++;
      if (this.#cancelled > FEW && this.#cancelled * 2 > this.#heap.length) this.#sweep();
    };
  }

  /** Wake all that are due: timers stop while a machine sleeps, the time of day does not. */
  run(): void {
    const now = this.#clock.now();
    for (let first = this.#heap[0]; first && (first.at <= now || !first.wake); first = this.#heap[0]) {
      this.#takeFirst();
      const { wake } = first;
      first.wake = undefined;
      if (wake) wake();
      else this.#cancelled--;
    }
    this.#setTimer();
  }

  /** Cancels all wake-ups. */
  stop(): void {
    this.#heap = [];
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #sweep(): void {
    // A sorted array is a valid heap.
    this.#heap = this.#heap.filter((wakeUp) => wakeUp.wake).sort((a, b) => a.at - b.at);
    this.#cancelled = 0;
    this.#setTimer();
  }

  #setTimer(): void {
    const at = this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
    if (at === this.#timerAt && this.#timer) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.after(at - this.#clock.now(), () => {
      this.#timer = undefined;
      this.run();
    });
  }

  #takeFirst(): void {
    const last = this.#heap.pop();
    if (!last || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  #rise(index: number): void {
    for (let child = index; child > 0;) {
      const parent = (child - 1) >> 1;
      if (this.#at(parent) <= this.#at(child)) return;
      this.#swap(parent, child);
      child = parent;
    }
  }

  #sink(index: number): void {
    for (let parent = index; ;) {
      const left = parent * 2 + 1;
      const least = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
      if (this.#at(least) >= this.#at(parent)) return;
      this.#swap(parent, least);
      parent = least;
    }
  }

  #at(index: number): number {
    return this.#heap[index]?.at ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    const [first, second] = [this.#heap[a], this.#heap[b]];
    if (!first || !second) return;
    this.#heap[a] = second;
    this.#heap[b] = first;
  }
}
