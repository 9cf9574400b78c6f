import { definePort, type Port } from "../grammar/port.ts";

/**
 * Starts things at planned times: once per planned time, over restarts and in any number of processes. An area that has schedules defines a
 * source of them.
 */
export interface Schedules {
  /**
   * Define a source of schedules, and what a planned time starts. Call it once per source, before `ready` of the engine; TypeError
   * otherwise.
   */
  define(source: ScheduleSource): void;
  /**
   * The state of a schedule of a source. Throws RangeError for a timing that is not valid, and for an overlap that the source does
   * not support.
   */
  state(source: string, schedule: Schedule): Promise<ScheduleState>;
  /** Stop or allow the starts of a schedule. Planned times of a pause are not caught up. Durable when it resolves. */
  pause(source: string, id: string, isPaused: boolean): Promise<void>;
}

/** Where schedules come from, and what they start. */
export interface ScheduleSource {
  /** Unique in an app; letters, digits, `_`, `-`. */
  readonly name: string;
  /** The present schedules. It is called often, so it must be cheap. A schedule that is missing does not start anything. */
  list(signal: AbortSignal): Promise<readonly Schedule[]>;
  /**
   * Start what is planned. It is called at least once per planned time, also by several processes after another, with the same
   * `plannedAt`: use it as an idempotency key. If it throws, it is called again. What was started before may still go on.
   */
  start(id: string, plannedAt: number, signal: AbortSignal): Promise<void>;
  /**
   * Whether what was started at this planned time, or what continues an earlier start, goes on: it executes, or waits to be executed. Sources without `isOpen` and `stop` only
   * support the overlap `allow`.
   */
  isOpen?(id: string, plannedAt: number, signal: AbortSignal): Promise<boolean>;
  /** Stop what `isOpen` means. Durable when it resolves. Has no effect if it has ended. */
  stop?(id: string, plannedAt: number, signal: AbortSignal): Promise<void>;
  /**
   * How far what was started at this planned time has come. Undefined if it is unknown: it started nothing, or it was removed. Schedules of
   * sources without `outcome` do not know their ends.
   */
  outcome?(id: string, plannedAt: number): Promise<ScheduleOutcome | undefined>;
}

/** What a planned time started. */
export interface ScheduleOutcome {
  readonly runId: string;
  /** `stopped`: a person or another start ended it, which is neither a success nor a failure. */
  readonly status: "open" | "completed" | "failed" | "stopped";
  /** When it ended, in milliseconds since 1970. Absent while it is open. */
  readonly at?: number | undefined;
}

/** One schedule. */
export interface Schedule {
  /** Unique in its source; 1-200 characters. */
  readonly id: string;
  readonly timing: ScheduleTiming;
  /** Each start is delayed by up to this many milliseconds, evenly spread. Processes agree on it. Default: 0. */
  readonly jitterMs?: number | undefined;
  /** How many planned times that were missed, for example while no process ran, are started late: the newest ones. Default: 1. */
  readonly catchUp?: number | undefined;
  /** What happens at a planned time while the start before it goes on. Default: `allow`. */
  readonly overlap?: ScheduleOverlap | undefined;
}

/**
 * `allow`: the source is started as usual. `queue`: the planned time waits until the start before it has ended, and planned times start in their
 * order; a limited number of them waits, and the others start nothing. `skip`: the planned time starts nothing. `cancel`: the earlier start is
 * stopped, and then the source is started; of several missed planned times only the newest is started.
 */
export type ScheduleOverlap = "allow" | "queue" | "skip" | "cancel";

/** When a schedule starts something. */
export type ScheduleTiming =
  | {
      /** Five fields: minute, hour, day of the month, month, day of the week. */
      readonly cron: string;
      /** Name in the IANA time zone database. Default: `UTC`. */
      readonly timeZone?: string | undefined;
    }
  | {
      /** Milliseconds between planned times, which are the multiples of it since 1970. At least 1000. */
      readonly everyMs: number;
    };

/** The state of a schedule. Times are milliseconds since 1970. */
export interface ScheduleState {
  readonly isPaused: boolean;
  /** The next planned times, without their jitter: at most five. Empty while it is paused. */
  readonly next: readonly number[];
  /** The newest planned time that was started. */
  readonly last?: number | undefined;
  /** With the overlap `queue`: the number of planned times that wait for the end of the start before them. Absent if none waits. */
  readonly waiting?: number | undefined;
  /** The newest start that has ended. Absent if none of the newest ten starts has ended, or is still stored. */
  readonly ended?: (ScheduleOutcome & { readonly plannedAt: number }) | undefined;
  /** The number of failures since the last success, of the newest ten starts. Open and stopped starts do not count. */
  readonly failures: number;
  /** The last time that planned times were missed and not caught up. Absent if that never happened. */
  readonly missed?: MissedTimes | undefined;
}

/** Planned times that started nothing, because no process started them in time. */
export interface MissedTimes {
  /** At most 100, which means 100 or more. */
  readonly count: number;
  /** The newest of them. */
  readonly last: number;
}

/** The port of schedules. */
export const schedules: Port<Schedules> = definePort<Schedules>("schedules");
