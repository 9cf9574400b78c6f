import { table } from "../terminal/table.ts";
import type { ListedSchedule } from "./running-schedules.ts";

export function scheduleTable(schedules: readonly ListedSchedule[]): string {
  return table(
    ["SCHEDULE", "TIMING", "STATE", "NEXT", "LAST START"],
    schedules.map(({ agentId, name, cron, timeZone = "UTC", everyMs, paused, next, last, fault }) => [
      `${agentId}/${name}`,
      cron === undefined ? `every ${(everyMs ?? 0) / 1000} s` : `${cron} ${timeZone}`,
      fault ?? (paused ? "paused" : "active"),
      ...[next[0] ?? "", last ?? ""],
    ]),
  );
}
