import { defineAdapter, isStoreAway, ports } from "@portico/core";
import { dueTimes, type Planning } from "./due-times.ts";
import { readTiming } from "./planned-times.ts";

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

/** What is known of a schedule. */
interface Progress {
  /** All planned times up to this one were decided. */
  readonly through: number;
  /** The newest planned time that was started. */
  readonly last?: number | undefined;
  /** Its timing, as JSON. Another one begins anew, and catches nothing up. */
  readonly timing: string;
  readonly isPaused?: true | undefined;
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
    /** By key: when a schedule with this timing is due next, as this process knows it. */
    const known = new Map<string, { readonly timing: string; readonly next: number }>();
    const broken = new Map<string, string>();
    const keyOf = (source: string, id: string) => `${source}/${id}`;
    const planningOf = (key: string, schedule: ports.Schedule): Planning => ({
      schedule: key,
      times: readTiming(schedule.timing),
      jitterMs: schedule.jitterMs ?? 0,
      graceMs,
      catchUp: Math.min(schedule.catchUp ?? 1, MOST_MISSED),
    });

    const look = async (source: ports.ScheduleSource, schedule: ports.Schedule, signal: AbortSignal): Promise<void> => {
      const key = keyOf(source.name, schedule.id);
      const timing = JSON.stringify(schedule.timing);
      const now = clock.now();
      const before = known.get(key);
      if (before?.timing === timing && now < before.next) return;
      const planning = planningOf(key, schedule);
      const row = await stored.get(key);
      const progress = row?.value.timing === timing ? row.value : { ...row?.value, through: now, timing };
      const { due, through } = progress.isPaused ? { due: [], through: now } : dueTimes(planning, progress.through, now);
      let { last } = progress;
      for (const plannedAt of due) {
        signal.throwIfAborted();
        await source.start(schedule.id, plannedAt, signal);
        last = plannedAt;
      }
      const isChanged = row?.value.timing !== timing || due.length > 0;
      if (isChanged)
        await stored.put(key, { ...progress, through, ...(last !== undefined && { last }) }, row?.version ?? "absent");
      const next = planning.times.after(through, 1)[0] ?? Number.POSITIVE_INFINITY;
      known.set(key, { timing, next });
    };

    const lookAtAll = async (signal: AbortSignal): Promise<void> => {
      for (const source of sources.values()) {
        for (const schedule of await source.list(signal)) {
          const key = keyOf(source.name, schedule.id);
          try {
            await look(source, schedule, signal);
            broken.delete(key);
          } catch (error) {
            signal.throwIfAborted();
            // Another process or a pause wrote meanwhile: the next look reads again.
            if (error instanceof ports.RecordConflict || isStoreAway(error)) continue;
            const reason = error instanceof Error ? error.message : "unknown";
            if (broken.get(key) !== reason) telemetry.log.warn("A schedule cannot be started", { schedule: key }, error);
            broken.set(key, reason);
          }
        }
      }
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
        const found = (await stored.get(keyOf(source, schedule.id)))?.value;
        const isPaused = found?.isPaused ?? false;
        const next = isPaused ? [] : times.after(clock.now(), SHOWN_TIMES);
        return { isPaused, next, ...(found?.last !== undefined && { last: found.last }) };
      },
      async pause(source, id, isPaused) {
        const key = keyOf(source, id);
        for (;;) {
          const row = await stored.get(key);
          const { isPaused: _before, ...rest } = row?.value ?? { through: 0, timing: "" };
          // What was planned during the pause stays left out.
          const value = { ...rest, through: Math.max(rest.through, clock.now()), ...(isPaused && { isPaused: true as const }) };
          try {
            await stored.put(key, value, row?.version ?? "absent");
            known.delete(key);
            return;
          } catch (error) {
            if (!(error instanceof ports.RecordConflict)) throw error;
          }
        }
      },
    };
  },
});
