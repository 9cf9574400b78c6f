import { definePort, type Port } from "../grammar/port.ts";

/** Time is a port, so that a test can control it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Run `run` once after `ms` milliseconds, never within this call. Any number of milliseconds is allowed; below 0 counts as 0.
   * Timers run in the order in which they become due. The timer alone does not keep the process alive. Throws RangeError when
   * `ms` is not finite.
   */
  after(ms: number, run: () => void): Timer;
  /**
   * Resolves after `ms` milliseconds, as `after` counts them. Rejects with the signal's reason if it is already aborted, or
   * aborts first.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** One scheduled call of `after`. */
export interface Timer {
  /** Restart the timer from now. Does nothing after it ran or was cancelled. */
  refresh(): void;
  cancel(): void;
}

/** The port of the clock. */
export const clock: Port<Clock> = definePort<Clock>("clock");
