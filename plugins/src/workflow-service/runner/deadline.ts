import type { ports } from "@portico/core";

/** When a run's time is over. It stands still while somebody is waited for (workflow.md, `settings.timeout`). */
export class Deadline {
  readonly #clock: ports.Clock;
  readonly #over = new AbortController();
  #at: number;
  #pausedAt: number | undefined;
  #pauses = 0;
  #timer: ports.Timer | undefined;

  constructor(clock: ports.Clock, at: number) {
    this.#clock = clock;
    this.#at = at;
    this.#start();
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** How long a wait may be at most, so that somebody is there when the time is over. */
  left(): number {
    return this.#pausedAt === undefined ? Math.max(0, this.#at - this.#clock.now()) : Number.POSITIVE_INFINITY;
  }

  /** A person is waited for since `since`, milliseconds since 1970. */
  pause(since: number): void {
    this.#pauses++;
    if (this.#pauses > 1) return;
    this.#pausedAt = since;
    this.#timer?.cancel();
  }

  /** Nobody is waited for since `until`. */
  resume(until: number): void {
    this.#pauses--;
    if (this.#pauses > 0 || this.#pausedAt === undefined) return;
    this.#at += Math.max(0, until - this.#pausedAt);
    this.#pausedAt = undefined;
    this.#start();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #start(): void {
    this.#timer = this.#clock.after(this.left(), () => this.#over.abort());
  }
}
