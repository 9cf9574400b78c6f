import { Cron } from "croner";
import { type Clocks, localClocks } from "./local-clocks.ts";
import type { PlannedTimes } from "./times-in-order.ts";

/**
 * The planned times of a cron expression of five fields. An expression for every hour is planned at each instant whose local time matches. Any
 * other one is planned once for each local time that matches: at its first instant if it exists twice, and at the end of the gap if a
 * change of clocks leaves it out. Throws for an expression or a time zone that is not valid.
 */
export function cronTimes(expression: string, timeZone: string): PlannedTimes {
  const local = readCron(expression, "UTC");
  return isForEveryHour(local) ? timesOf(readCron(expression, timeZone)) : onceForEach(timesOf(local), localClocks(timeZone));
}

function readCron(expression: string, timezone: string): Cron {
  return new Cron(expression, { timezone, mode: "5-part", paused: true });
}

/** The times of the library. It is used for local times only in UTC: it loses or repeats hours of a list when clocks change. */
function timesOf(cron: Cron): PlannedTimes {
  const times = (dates: readonly Date[]) => dates.map((date) => date.getTime());
  return {
    after: (time, count) => times(cron.nextRuns(count, new Date(time))),
    // The library looks strictly before a time, and knows whole seconds.
    upTo: (time, count) => times(cron.previousRuns(count, new Date(Math.floor(time / 1000) * 1000 + 1000))).toReversed(),
  };
}

function isForEveryHour(cron: Cron): boolean {
  const [, hours] = cron.getPattern()!.trim().split(/\s+/);
  return readCron(`0 ${hours} * * *`, "UTC").nextRuns(24, new Date(-1))[23]?.getTime() === 23 * 3_600_000;
}

/** One planned time for each local time. `local` has local times, as if the clocks were those of UTC. Their instants never decrease. */
function onceForEach(local: PlannedTimes, { shownAt, latestShownUntil, firstInstant }: Clocks): PlannedTimes {
  return {
    after(time, count) {
      const found: number[] = [];
      for (let from = shownAt(time); found.length < count;) {
        // Around a change of clocks, some local times have the same instant, or an earlier one.
        const asked = count - found.length;
        const shown = local.after(from, asked);
        for (const each of shown) {
          const instant = firstInstant(each);
          if (instant > (found.at(-1) ?? time)) found.push(instant);
        }
        if (shown.length < asked) break;
        from = shown.at(-1)!;
      }
      return found;
    },
    upTo(time, count) {
      const found: number[] = [];
      for (let until = latestShownUntil(time); found.length < count;) {
        // Around a change of clocks, some local times have the same instant, or an earlier one.
        const asked = count - found.length;
        const shown = local.upTo(until, asked);
        for (const each of shown.toReversed()) {
          const instant = firstInstant(each);
          if (instant <= time && instant !== found[0]) found.unshift(instant);
        }
        if (shown.length < asked) break;
        until = shown[0]! - 1;
      }
      return found;
    },
  };
}
