import { checkDuration, createSleep, defineAdapter, ports } from "@portico/core";

const DEFAULT_START = "2030-01-01T00:00:00.000Z";

/** A clock that a test controls. */
export interface ManualClock extends ports.Clock {
  /**
   * Let `ms` milliseconds pass. Runs due timers in order, and lets all their effects settle before the next one. Rejects with the
   * error of a timer; the rest of the time has then not passed. Calls are queued.
   */
  advance(ms: number): Promise<void>;
  /**
   * Let `ms` milliseconds pass at once, as on a machine that slept. Each timer that has become due runs once, in order, at the new time.
   * Costs no more with many intervals in between. Rejects like `advance`; the time has then passed, and the timers left are due.
   */
  jump(ms: number): Promise<void>;
  /** Milliseconds until the next timer is due. Undefined without timers. */
  untilNext(): number | undefined;
}

/** Options of a manual clock. */
export interface ManualClockOptions {
  /** ISO 8601; default 2030-01-01T00:00:00.000Z. */
  readonly startAt?: string;
  /** An existing clock, so that the test holds its controls. `startAt` is then ignored. */
  readonly clock?: ManualClock;
}

/** Time that advances only when a test moves it. */
export const manualClock = defineAdapter({
  name: "clock/manual",
  port: ports.clock,
  needs: {},
  open: (_given, options: ManualClockOptions): ports.Clock => options.clock ?? createManualClock(options),
});

interface Entry {
  due: number;
  /** Tie-breaker: timers that were set first run first. */
  order: number;
  readonly run: () => void;
}

/** A manual clock with its controls. Throws RangeError when `startAt` is invalid. */
export function createManualClock(options: { readonly startAt?: string } = {}): ManualClock {
  const start = Date.parse(options.startAt ?? DEFAULT_START);
  if (Number.isNaN(start)) throw new RangeError("startAt is not an ISO 8601 time");
  let now = start;
  let sequence = 0;
  let advancing: Promise<void> = Promise.resolve();
  const entries = new Set<Entry>();

  const after: ports.Clock["after"] = (ms, run) => {
    const duration = checkDuration(ms);
    const entry: Entry = { due: now + duration, order: ++sequence, run };
    entries.add(entry);
    return {
      refresh() {
        entry.due = now + duration;
        entry.order = ++sequence;
      },
      cancel: () => void entries.delete(entry),
    };
  };

  const move = async (ms: number): Promise<void> => {
    const end = now + ms;
    // First, let code that the test has just started set its timers.
    await settled();
    for (let entry = nextDue(entries, end); entry; entry = nextDue(entries, end)) {
      entries.delete(entry);
      now = entry.due;
      entry.run();
      await settled();
    }
    now = end;
  };

  const leap = async (ms: number): Promise<void> => {
    await settled();
    now += ms;
    // What these timers set anew begins at the new time.
    for (let entry = nextDue(entries, now); entry; entry = nextDue(entries, now)) {
      entries.delete(entry);
      entry.run();
      await settled();
    }
  };
  const queued = (move: (ms: number) => Promise<void>) => (ms: number) => {
    const duration = checkDuration(ms);
    const moved = advancing.then(() => move(duration));
    advancing = moved.catch(() => {});
    return moved;
  };

  return {
    now: () => now,
    after,
    sleep: createSleep(after),
    untilNext() {
      const next = nextDue(entries, Number.POSITIVE_INFINITY);
      return next && Math.max(0, next.due - now);
    },
    advance: queued(move),
    jump: queued(leap),
  };
}

function nextDue(entries: ReadonlySet<Entry>, end: number): Entry | undefined {
  let first: Entry | undefined;
  for (const entry of entries) {
    if (entry.due > end) continue;
    if (!first || entry.due < first.due || (entry.due === first.due && entry.order < first.order)) first = entry;
  }
  return first;
}

/** One turn of the event loop: every promise that can settle has settled after it, even at the end of a long chain. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
