import type { CallResult } from "@portico/core/client";
import { agentSchedulesContract } from "@portico/operator/agent-schedules/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { findAgentService } from "./running-agent-service.ts";
import { table } from "./terminal.ts";

type ListedSchedule = CallResult<typeof agentSchedulesContract.list>["schedules"][number];

interface ScheduleName {
  readonly agentId: string;
  readonly name: string;
}

/** A schedule as it is written on the command line: `AGENT/NAME`. Throws CommandFailed (64) for any other text. */
export function readScheduleName(text: string): ScheduleName {
  const [agentId, name, ...more] = text.split("/");
  if (agentId && name && more.length === 0) return { agentId, name };
  throw new CommandFailed("Write a schedule as AGENT/NAME, such as reporter/morning", EXIT.usage);
}

/**
 * The schedules of the agent service that uses the data directory, or of the service at another address. The functions throw CommandFailed: 1 with the
 * service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findSchedules(settings: PlatformSettings, given: string | undefined) {
  const { client, answered } = await findAgentService(settings, agentSchedulesContract, given);
  return {
    list: (): Promise<readonly ListedSchedule[]> => answered(async (signal) => (await client.list({ signal })).schedules),
    trigger: (params: ScheduleName) => answered((signal) => client.trigger({ params, signal })),
    pause: (params: ScheduleName) => answered((signal) => client.pause({ params, signal })),
    resume: (params: ScheduleName) => answered((signal) => client.resume({ params, signal })),
  };
}

/** A schedule of an agent or of a workflow. */
interface TimedSchedule {
  readonly name: string;
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly paused: boolean;
  readonly next: readonly string[];
  readonly last?: string | undefined;
  /** The number of planned times that wait. Schedules of agents have none. */
  readonly waiting?: number | undefined;
  /** The newest planned time that was refused. Schedules of agents have none. */
  readonly lastRefused?: { readonly plannedAt: string; readonly code: string } | undefined;
  readonly fault?: string | undefined;
}

/** `ownerOf`: the agent or workflow of a schedule. */
export function scheduleTable<S extends TimedSchedule>(schedules: readonly S[], ownerOf: (schedule: S) => string): string {
  return table(
    ["SCHEDULE", "TIMING", "STATE", "NEXT", "LAST START"],
    schedules.map((schedule) => {
      const { name, cron, timeZone = "UTC", everyMs = 0, paused, next, last, waiting, lastRefused, fault } = schedule;
      const refused = lastRefused === undefined ? "" : `, refused ${lastRefused.plannedAt}`;
      return [
        `${ownerOf(schedule)}/${name}`,
        cron === undefined ? `every ${everyMs / 1000} s` : `${cron} ${timeZone}`,
        fault ?? (paused ? "paused" : "active") + (waiting === undefined ? "" : `, ${waiting} waiting`) + refused,
        ...[next[0] ?? "", last ?? ""],
      ];
    }),
  );
}
