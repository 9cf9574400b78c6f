import type { Clock, Timer } from "../ports/clock.ts";

/** For a longer timer, Node runs the callback after one millisecond. */
const LONGEST_MS = 2 ** 31 - 1;

/** The machine's own time, by the rules of the port `clock`. */
export function createSystemClock(): Clock {
  const after = (ms: number, run: () => void): Timer => {
    const duration = checkDuration(ms);
    return duration > LONGEST_MS ? longTimer(duration, run) : shortTimer(duration, run);
  };
  return { now: () => Date.now(), after, sleep: createSleep(after) };
}

function shortTimer(ms: number, run: () => void): Timer {
  let over = false;
  const timeout = setTimeout(() => {
    over = true;
    run();
  }, ms).unref();
  return {
    // Node's own refresh would restart a timer that has ended. Otherwise it is very cheap, which idle timeouts need.
    refresh: () => void (over || timeout.refresh()),
    cancel() {
      over = true;
      clearTimeout(timeout);
    },
  };
}

/** Several of Node's timers, one after another. */
function longTimer(ms: number, run: () => void): Timer {
  let over = false;
  let timeout: NodeJS.Timeout | undefined;
  const wait = (left: number): void => {
    timeout = setTimeout(
      () => {
        if (left > LONGEST_MS) return wait(left - LONGEST_MS);
        over = true;
        run();
      },
      Math.min(left, LONGEST_MS),
    ).unref();
  };
  wait(ms);
  return {
    refresh() {
      if (over) return;
      clearTimeout(timeout);
      wait(ms);
    },
    cancel() {
      over = true;
      clearTimeout(timeout);
    },
  };
}

/** Milliseconds to wait. A negative duration is 0. Throws RangeError for an invalid number of milliseconds. */
export function checkDuration(ms: number): number {
  if (!Number.isFinite(ms)) throw new RangeError("A duration is a finite number of milliseconds");
  return Math.max(0, ms);
}

/** The clock port's `sleep`, made of its `after`. */
export function createSleep(after: Clock["after"]): Clock["sleep"] {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = after(ms, () => {
        // A signal may live as long as the app: its listener must be removed.
        signal?.removeEventListener("abort", abort);
        resolve();
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
}

/**
 * Returns the result of a promise, or rejects with the signal's reason as soon as the signal is aborted. The work then continues
 * by itself, and for other waiting callers. Without a signal, returns the promise unchanged.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  // A new promise for each wait: a shared one would keep the results of all races in memory until it settles.
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    work.then(
      (result) => {
        signal.removeEventListener("abort", abort);
        resolve(result);
      },
      (error: unknown) => {
        signal.removeEventListener("abort", abort);
        reject(error as Error);
      },
    );
  });
}
