import type { ports } from "@portico/core";

/** The pauses of a run's timeout: their total in milliseconds, and the start of the present pause in milliseconds since 1970. */
export interface Standstill {
  readonly ms: number;
  readonly since?: number | undefined;
}

/** While the time is stopped, its end is unknown: waiting code checks again at this interval. */
const LOOK_AGAIN_MS = 60 * 60_000;
/** An execution whose time elapsed before it started first handles its earlier runs and turns, which it must stop. */
const MEETING_AGAIN_MS = 1000;

/** The timeout of a run. The time stops while the run waits for a person (workflow.md, `settings.timeout`). */
export class Deadline {
  readonly #clock: ports.Clock;
  readonly #over = new AbortController();
  #at: number;
  #stoodStillMs: number;
  #pausedAt: number | undefined;
  #pauses: number;
  #timer: ports.Timer | undefined;

  /** `pauses`: the number of open gates of an earlier execution, which began at `stoodStill.since`. */
  constructor(clock: ports.Clock, at: number, { ms, since }: Standstill = { ms: 0 }, pauses = 0) {
    this.#clock = clock;
    this.#at = at + ms;
    this.#stoodStillMs = ms;
    this.#pauses = pauses;
    if (pauses > 0) this.#pausedAt = since ?? clock.now();
    else this.#start(this.left() === 0 ? MEETING_AGAIN_MS : 0);
  }

  /** Aborts when the time has elapsed. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The pauses, for a later execution of the run. */
  get standstill(): Standstill {
    return { ms: this.#stoodStillMs, since: this.#pausedAt };
  }

  /** The longest wait before checking again, so that the timeout is noticed. 0 when the time has elapsed. */
  left(): number {
    return this.#pausedAt === undefined ? Math.max(0, this.#at - this.#clock.now()) : LOOK_AGAIN_MS;
  }

  /** The run has waited for a person since `since`, milliseconds since 1970. */
  pause(since: number): void {
    this.#pauses++;
    if (this.#pauses > 1) return;
    this.#pausedAt = since;
    this.#timer?.cancel();
  }

  /** The wait for a person ended at `until`. */
  resume(until: number): void {
    this.#pauses--;
    if (this.#pauses > 0 || this.#pausedAt === undefined) return;
    const stood = Math.max(0, until - this.#pausedAt);
    this.#at += stood;
    this.#stoodStillMs += stood;
    this.#pausedAt = undefined;
    this.#start();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #start(least = 0): void {
    this.#timer = this.#clock.after(Math.max(least, this.left()), () => this.#over.abort());
  }
}
