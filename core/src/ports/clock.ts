import { definePort, type Port } from "../port.ts";

/** Time comes in by port, so that a test can hold it still. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Run once after `ms` milliseconds, never within this call, and however many they are; below 0 counts as 0. Timers run in the
   * order in which they fall due. The timer alone does not keep the process alive. Throws RangeError when `ms` is not finite.
   */
  after(ms: number, run: () => void): Timer;
  /** Resolves after `ms` milliseconds, as `after` counts them; rejects with the signal's reason when it aborts first, or had. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Timer {
  /** Start counting again from now; does nothing after it ran or was cancelled. */
  refresh(): void;
  cancel(): void;
}

export const clock: Port<Clock> = definePort<Clock>("clock");
