import type { ports } from "@portico/core";
import { jitterOf, type PlannedTimes } from "./planned-times.ts";

/** What decides which planned times of a schedule are started. */
export interface Planning {
  /** Identifies the schedule, for its jitter. */
  readonly schedule: string;
  readonly times: PlannedTimes;
  readonly jitterMs: number;
  /** For how long after its jitter a planned time is still started as usual. Later than this, it was missed. */
  readonly graceMs: number;
  /** How many missed planned times are started late: the newest ones. 0 starts none. */
  readonly catchUp: number;
}

/** Timely planned times that are decided at once. The others are decided by the next call. */
const AT_ONCE = 1000;
/** Missed planned times that are computed at once, so that a large `catchUp` costs only what was missed. */
const PIECE = 100;
/** Missed planned times that are not started are counted up to this number. */
const MOST_COUNTED = 100;

/** What is started at a time. */
export interface DueTimes {
  /** Oldest first. */
  readonly due: readonly number[];
  /** All planned times up to this one are decided. */
  readonly through: number;
  /** Planned times that start nothing. Absent without such times. */
  readonly missed?: ports.MissedTimes;
}

/**
 * The planned times to start at `now`, oldest first, when all planned times up to `through` were decided before. The answer's
 * `through` never decreases, so a clock that steps back starts nothing twice. Its work does not grow with the time that has passed.
 */
export function dueTimes({ schedule, times, jitterMs, graceMs, catchUp }: Planning, through: number, now: number): DueTimes {
  const missedUntil = Math.max(through, now - graceMs - jitterMs - 1);
  const late = newestBetween(times, through, missedUntil, catchUp + MOST_COUNTED);
  const count = Math.max(0, late.length - catchUp);
  const missed = count > 0 ? { count, last: late[count - 1]! } : undefined;
  const timely: number[] = [];
  for (let last = missedUntil; timely.length < AT_ONCE;) {
    const [planned] = times.after(last, 1);
    if (planned === undefined || planned + jitterOf(schedule, planned, jitterMs) > now) break;
    timely.push(planned);
    last = planned;
  }
  return { due: [...late.slice(count), ...timely], through: timely.at(-1) ?? missedUntil, ...(missed && { missed }) };
}

/** The newest planned times after `from` and up to `until`, at most `count`, oldest first. */
function newestBetween(times: PlannedTimes, from: number, until: number, count: number): readonly number[] {
  const pieces: (readonly number[])[] = [];
  for (let left = count, at = until; left > 0;) {
    const asked = Math.min(PIECE, left);
    const piece = times.upTo(at, asked).filter((planned) => planned > from);
    pieces.unshift(piece);
    if (piece.length < asked) break;
    left -= asked;
    at = piece[0]! - 1;
  }
  return pieces.flat();
}
