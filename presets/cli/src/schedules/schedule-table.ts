import { table } from "../terminal/table.ts";

/** A schedule of an agent or of a workflow. */
export interface TimedSchedule {
  readonly name: string;
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly paused: boolean;
  readonly next: readonly string[];
  readonly last?: string | undefined;
  /** The number of planned times that wait. Schedules of agents have none. */
  readonly waiting?: number | undefined;
  readonly fault?: string | undefined;
}

/** `ownerOf`: the agent or workflow of a schedule. */
export function scheduleTable<S extends TimedSchedule>(schedules: readonly S[], ownerOf: (schedule: S) => string): string {
  return table(
    ["SCHEDULE", "TIMING", "STATE", "NEXT", "LAST START"],
    schedules.map((schedule) => {
      const { name, cron, timeZone = "UTC", everyMs = 0, paused, next, last, waiting, fault } = schedule;
      return [
        `${ownerOf(schedule)}/${name}`,
        cron === undefined ? `every ${everyMs / 1000} s` : `${cron} ${timeZone}`,
        fault ?? (paused ? "paused" : "active") + (waiting === undefined ? "" : `, ${waiting} waiting`),
        ...[next[0] ?? "", last ?? ""],
      ];
    }),
  );
}
