import type { Clock, Timer } from "../ports/clock.ts";
import { checkDuration } from "./check-duration.ts";
import { createSleep } from "./create-sleep.ts";

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
