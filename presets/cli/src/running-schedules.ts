import type { CallResult } from "@portico/core/client";
import type { ScheduleAnswer } from "@portico/core/contract";
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
interface TimedSchedule extends ScheduleAnswer {
  readonly name: string;
  /** The newest planned time that was refused. Schedules of agents have none. */
  readonly lastRefused?: { readonly plannedAt: string; readonly code: string } | undefined;
}

/** The schedules that fail or start nothing, if only these are asked for. */
export function chosenSchedules<S extends TimedSchedule>(schedules: readonly S[], isOnlyFailing: boolean): readonly S[] {
  return isOnlyFailing ? schedules.filter(({ state }) => state === "failing" || state === "invalid") : schedules;
}

/** `ownerOf`: the agent or workflow of a schedule. */
export function scheduleTable<S extends TimedSchedule>(schedules: readonly S[], ownerOf: (schedule: S) => string): string {
  return table(
    ["SCHEDULE", "TIMING", "STATE", "NEXT", "LAST START", "LAST END"],
    schedules.map((schedule) => {
      const { name, cron, timeZone = "UTC", everyMs = 0, next, last, lastEnd } = schedule;
      return [
        `${ownerOf(schedule)}/${name}`,
        cron === undefined ? `every ${everyMs / 1000} s` : `${cron} ${timeZone}`,
        stateOf(schedule),
        ...[next[0] ?? "", last ?? "", lastEnd ? `${lastEnd.status} ${lastEnd.endedAt} ${lastEnd.runId}` : ""],
      ];
    }),
  );
}

function stateOf({ state, fault, failures, last, missed, waiting, lastRefused }: TimedSchedule): string {
  const word = state === "ok" ? "active" : state === "new" ? (last === undefined ? "never started" : "no result yet") : state;
  return [
    fault ?? word,
    ...(failures > 0 ? [`${failures}${failures === 10 ? " or more" : ""} failures in a row`] : []),
    ...(missed ? [`${missed.count}${missed.count === 100 ? " or more" : ""} missed`] : []),
    ...(waiting === undefined ? [] : [`${waiting} waiting`]),
    ...(lastRefused ? [`refused ${lastRefused.plannedAt}`] : []),
  ].join(", ");
}
