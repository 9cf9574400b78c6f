import { defineAdapter, isStoreAway, ports, readPages } from "@portico/core";
import { type DueTimes, dueTimes, type Planning } from "./due-times.ts";
import { jitterOf, readTiming } from "./planned-times.ts";
import { isDecided, type Stretch, withDecided } from "./stretches.ts";
import { mayWait } from "./waiting-times.ts";

/** Options of `recordSchedules`. */
export interface RecordSchedulesOptions {
  /** How often schedules are looked at, in milliseconds. Default: 1000. */
  readonly everyMs?: number | undefined;
  /** How late a planned time is still started as usual. Later than this, it was missed. Default: 60 seconds. */
  readonly graceMs?: number | undefined;
}

const EVERY_MS = 1000;
const GRACE_MS = 60_000;
const SHOWN_TIMES = 5;
/** Missed planned times of one schedule that are started at most. */
const MOST_MISSED = 1000;
const CHORE = "schedules";
const READ_AT_ONCE = 1000;
/** The timing in the record of a paused schedule that its source does not list. */
const NO_TIMING = "";
/** Starts whose ends are looked at. */
const STARTS_KEPT = 10;
/** The next time of a schedule whose record must be read. */
const NOW = Number.NEGATIVE_INFINITY;

/** What is known of a schedule. */
interface Progress {
  /** All planned times up to this one were decided. */
  readonly through: number;
  /** The newest planned time that was started. */
  readonly last?: number | undefined;
  /** Its timing, as JSON, or NO_TIMING. Another one begins anew, and catches nothing up. */
  readonly timing: string;
  readonly isPaused?: true | undefined;
  /** Planned times that were decided, so that none is started twice after a clock that was ahead is corrected. */
  readonly stretches?: readonly Stretch[] | undefined;
  /** The planned time that is being started, if it may not overlap with another one: no process decides it differently. */
  readonly starting?: number | undefined;
  /** Planned times that wait for the end of the start before them, oldest first. */
  readonly waiting?: readonly number[] | undefined;
  /** The newest planned times that were started, oldest first. How they ended is asked of the source, so an end writes nothing here. */
  readonly started?: readonly number[] | undefined;
  /** The last planned times that were missed and not caught up. */
  readonly missed?: ports.MissedTimes | undefined;
}

/** What this process knows of a schedule, so that it reads only what is due. */
interface Known {
  readonly timing: string;
  readonly through: number;
  /** When it is due next, in milliseconds since 1970. */
  readonly next: number;
  /** The fault that was logged. */
  readonly fault?: string | undefined;
}

/**
 * Schedules whose progress is in the records. One process at a time looks at them, in a chore of the engine, and reads only what is due. A kill
 * between a start and its record repeats the start with the same planned time.
 */
export const recordSchedules = defineAdapter({
  name: "schedules/records",
  port: ports.schedules,
  needs: { records: ports.records, engine: ports.engine, clock: ports.clock, telemetry: ports.telemetry },
  open({ records, engine, clock, telemetry }, options: RecordSchedulesOptions, scope): ports.Schedules {
    const { everyMs = EVERY_MS, graceMs = GRACE_MS } = options;
    const stored = records.collection<Progress>({ name: "schedules" });
    const sources = new Map<string, ports.ScheduleSource>();
    /** By key. Undefined until this process has read what is stored. */
    let known: Map<string, Known> | undefined;
    /** Names of sources that cannot be listed. */
    const unlisted = new Set<string>();
    const keyOf = (source: string, id: string) => `${source}/${id}`;
    const planningOf = (key: string, schedule: ports.Schedule): Planning => ({
      schedule: key,
      times: readTiming(schedule.timing),
      jitterMs: schedule.jitterMs ?? 0,
      graceMs,
      catchUp: Math.min(schedule.catchUp ?? 1, MOST_MISSED),
    });

    const readKnown = async (): Promise<Map<string, Known>> => {
      const all = new Map<string, Known>();
      for await (const rows of readPages(stored, { limit: READ_AT_ONCE }))
        for (const { id, value } of rows) all.set(id, { timing: value.timing, through: value.through, next: NOW });
      return all;
    };

    /** What is known of a schedule now. The clock may have been ahead when all planned times up to `through` were decided. */
    const progressAt = (found: Progress | undefined, timing: string, now: number): Progress => {
      if (found?.timing !== timing) {
        const { last, isPaused, started, missed } = found ?? {};
        return { last, isPaused, started, missed, through: now, timing };
      }
      return found.through > now + graceMs ? { ...found, through: now } : found;
    };

    /** The start of this planned time was decided, and the process may have died before or after it. */
    const isStillMeant = ({ schedule, jitterMs, catchUp }: Planning, planned: number, now: number) =>
      catchUp > 0 || now <= planned + jitterOf(schedule, planned, jitterMs) + graceMs;

    /** Starts what is due, and returns what is known then. */
    const look = async (source: ports.ScheduleSource, schedule: ports.Schedule, signal: AbortSignal): Promise<Known> => {
      const key = keyOf(source.name, schedule.id);
      const timing = timingOf(schedule);
      const now = clock.now();
      const planning = planningOf(key, schedule);
      const overlap = overlapOf(source, schedule);
      let row = await stored.get(key);
      const before = row?.value;
      let progress = progressAt(before, timing, now);
      const put = async (next: Progress) => {
        row = await stored.put(key, next, row?.version ?? "absent");
        progress = next;
      };
      const start = async (plannedAt: number) => {
        signal.throwIfAborted();
        await source.start(schedule.id, plannedAt, signal);
      };
      const { starting } = progress;
      const isMeant = starting !== undefined && (overlap === "queue" || isStillMeant(planning, starting, now));
      if (isMeant && !progress.isPaused) await start(starting);
      const found: DueTimes = progress.isPaused ? { due: [], through: now } : dueTimes(planning, progress.through, now);
      if (found.missed) progress = { ...progress, missed: found.missed };
      const { stretches = [] } = progress;
      const due = found.due.filter((planned) => !isDecided(stretches, planned));
      const decidedUpTo = (time: number) =>
        withDecided(
          stretches,
          due.filter((planned) => planned <= time),
          planning.times,
        );
      const { through } = found;
      const decided = { through, stretches: decidedUpTo(through) };
      if (overlap === "queue") {
        const keep = (planned: readonly number[]) => {
          const waiting = mayWait(schedule.timing, planning.catchUp, planned);
          const count = planned.length - waiting.length;
          if (count > 0) telemetry.log.info("Planned times start nothing, because others wait", { schedule: key, count });
          return waiting;
        };
        let waiting = [...(progress.waiting ?? []), ...due];
        for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
          if (await isGoingOn(source, schedule.id, progress.last ?? next, signal)) break;
          waiting = [...keep(waiting.slice(1))];
          await put({ ...withStart(progress, next), ...decided, starting: next, waiting });
          await start(next);
        }
        progress = { ...progress, waiting: keep(waiting) };
      } else {
        // Planned times may have waited before the overlap was changed.
        progress = { ...progress, waiting: undefined };
        for (const plannedAt of overlap === "cancel" ? due.slice(-1) : due) {
          if (overlap !== "allow") {
            if (!(await mayStart(source, schedule, progress.last ?? plannedAt, signal))) continue;
            const until = { through: plannedAt, stretches: decidedUpTo(plannedAt) };
            await put({ ...withStart(progress, plannedAt), ...until, starting: plannedAt });
          }
          await start(plannedAt);
          progress = withStart(progress, plannedAt);
        }
      }
      const isChanged =
        before?.timing !== timing || found.due.length > 0 || found.missed !== undefined || before.through > through;
      if (isChanged || progress.starting !== undefined) await put({ ...progress, ...decided, starting: undefined });
      const isWaiting = (progress.waiting ?? []).length > 0;
      return { timing, through, next: isWaiting ? NOW : (planning.times.after(through, 1)[0] ?? Number.POSITIVE_INFINITY) };
    };

    const isGoingOn = async (source: ports.ScheduleSource, id: string, last: number, signal: AbortSignal): Promise<boolean> => {
      signal.throwIfAborted();
      return source.isOpen!(id, last, signal);
    };

    /** Whether a planned time starts something, although the start before it may go on, which `cancel` stops. */
    const mayStart = async (
      source: ports.ScheduleSource,
      { id, overlap }: ports.Schedule,
      last: number,
      signal: AbortSignal,
    ): Promise<boolean> => {
      signal.throwIfAborted();
      if (overlap === "cancel") await source.stop!(id, last, signal);
      else if (await isGoingOn(source, id, last, signal)) {
        telemetry.log.info("A planned time starts nothing, because the start before it goes on", {
          schedule: keyOf(source.name, id),
        });
        return false;
      }
      return true;
    };

    /** A schedule that is not listed begins anew if it comes back. Its pause stays. */
    const forget = async (key: string): Promise<void> => {
      const row = await stored.get(key);
      if (row?.value.isPaused) await stored.put(key, { ...row.value, timing: NO_TIMING }, row.version);
      else if (row) await stored.remove(key, row.version);
    };

    /** Undefined if it failed. */
    const listOf = async (source: ports.ScheduleSource, signal: AbortSignal) => {
      try {
        const list = await source.list(signal);
        unlisted.delete(source.name);
        return list;
      } catch (error) {
        signal.throwIfAborted();
        if (!unlisted.has(source.name)) telemetry.log.warn("Schedules cannot be listed", { source: source.name }, error);
        unlisted.add(source.name);
        return undefined;
      }
    };

    const lookAt = async (all: Map<string, Known>, source: ports.ScheduleSource, signal: AbortSignal): Promise<void> => {
      const list = await listOf(source, signal);
      if (!list) return;
      const listed = new Map(list.map((schedule) => [keyOf(source.name, schedule.id), schedule]));
      for (const [key, schedule] of listed) {
        const before = all.get(key);
        const now = clock.now();
        const isAhead = before !== undefined && before.through > now + graceMs;
        if (before?.timing === timingOf(schedule) && now < before.next && !isAhead) continue;
        try {
          all.set(key, await look(source, schedule, signal));
        } catch (error) {
          signal.throwIfAborted();
          if (isPassing(error)) continue;
          const fault = error instanceof Error ? error.message : "unknown";
          if (before?.fault !== fault) telemetry.log.warn("A schedule cannot be started", { schedule: key }, error);
          all.set(key, { timing: timingOf(schedule), through: NOW, next: NOW, fault });
        }
      }
      for (const [key, { timing }] of all) {
        if (listed.has(key) || !key.startsWith(keyOf(source.name, ""))) continue;
        try {
          if (timing !== NO_TIMING) await forget(key);
          all.delete(key);
        } catch (error) {
          if (!isPassing(error)) throw error;
        }
      }
    };

    const lookAtAll = async (signal: AbortSignal): Promise<void> => {
      known ??= await readKnown();
      for (const source of sources.values()) await lookAt(known, source, signal);
    };

    engine.chore(CHORE, { everyMs, firstMs: everyMs }, lookAtAll);
    scope.onReady(() => engine.ready());
    return {
      define(source) {
        if (sources.has(source.name)) throw new TypeError(`The source ${source.name} of schedules is defined twice`);
        sources.set(source.name, source);
      },
      async state(source, schedule) {
        const times = readTiming(schedule.timing);
        const from = sources.get(source);
        if (from) overlapOf(from, schedule);
        const found = (await stored.get(keyOf(source, schedule.id)))?.value;
        const isPaused = found?.isPaused ?? false;
        const next = isPaused ? [] : times.after(clock.now(), SHOWN_TIMES);
        const waiting = found?.waiting?.length ?? 0;
        return {
          ...{ isPaused, next, ...(await endsOf(from, schedule.id, found?.started ?? [])) },
          ...(found?.last !== undefined && { last: found.last }),
          ...(waiting > 0 && { waiting }),
          ...(found?.missed && { missed: found.missed }),
        };
      },
      async pause(source, id, isPaused) {
        const key = keyOf(source, id);
        for (;;) {
          const row = await stored.get(key);
          const {
            isPaused: _before,
            starting: _starting,
            waiting: _waiting,
            ...rest
          } = row?.value ?? { through: 0, timing: NO_TIMING };
          // What waits, or was planned during the pause, stays left out.
          const value = { ...rest, through: Math.max(rest.through, clock.now()), ...(isPaused && { isPaused: true as const }) };
          try {
            await stored.put(key, value, row?.version ?? "absent");
            if (known?.has(key)) known.set(key, { timing: value.timing, through: NOW, next: NOW });
            return;
          } catch (error) {
            if (!(error instanceof ports.RecordConflict)) throw error;
          }
        }
      },
    };
  },
});

/** The progress after a planned time was started. It may be started again after a kill. */
function withStart(progress: Progress, plannedAt: number): Progress {
  const { started = [] } = progress;
  const next = started.at(-1) === plannedAt ? started : [...started, plannedAt].slice(-STARTS_KEPT);
  return { ...progress, last: plannedAt, started: next };
}

/** The newest end, and the failures since the last success. A healthy schedule costs one question. */
async function endsOf(
  source: ports.ScheduleSource | undefined,
  id: string,
  started: readonly number[],
): Promise<Pick<ports.ScheduleState, "ended" | "failures">> {
  let ended: ports.ScheduleState["ended"];
  let failures = 0;
  for (const plannedAt of source?.outcome ? started.toReversed() : []) {
    const outcome = await source!.outcome!(id, plannedAt);
    if (!outcome || outcome.status === "open") continue;
    ended ??= { ...outcome, plannedAt };
    if (outcome.status === "completed") break;
    if (outcome.status === "failed") failures++;
  }
  return { failures, ...(ended && { ended }) };
}

const timingOf = ({ timing }: ports.Schedule): string => JSON.stringify(timing);

/** Throws RangeError if the source does not support it. */
function overlapOf(source: ports.ScheduleSource, { overlap = "allow" }: ports.Schedule): ports.ScheduleOverlap {
  if (overlap !== "allow" && !(source.isOpen && source.stop)) throw new RangeError("The source only supports the overlap allow");
  return overlap;
}

/** Another process or a pause wrote meanwhile, or the store is away: the next look reads again. */
const isPassing = (error: unknown): boolean => error instanceof ports.RecordConflict || isStoreAway(error);
