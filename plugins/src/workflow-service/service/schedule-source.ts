import { ports } from "@portico/core";
import type { Definition, WorkflowSchedule } from "../definition/definition.ts";
import { scheduledRunId } from "../runs/run-id.ts";
import { isTerminal } from "../runs/run-state.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";

/** The name of this source of schedules. */
export const SCHEDULE_SOURCE = "workflows";
/** Why a run was cancelled whose schedule has the overlap `cancel`. */
const OVERLAP = "schedule_overlap";

/** A schedule of a deployed definition. */
export interface DeployedSchedule {
  readonly definition: Definition;
  readonly schedule: WorkflowSchedule;
}

/** All schedules of the deployed definitions that are switched on. */
export function deployedSchedules({ catalogue }: Pick<WorkflowRuntime, "catalogue">): readonly DeployedSchedule[] {
  return catalogue
    .list()
    .flatMap((definition) => definition.schedules.map((schedule) => ({ definition, schedule })))
    .filter(({ schedule }) => schedule.enabled);
}

/** The id of a schedule in its source. */
export const idOf = ({ definition, schedule }: DeployedSchedule): string => `${definition.id}/${schedule.name}`;

/** A schedule as the port gets it. */
export function toSchedule(deployed: DeployedSchedule): ports.Schedule {
  const { timing, jitterMs, catchUp, overlap = "queue" } = deployed.schedule;
  return { id: idOf(deployed), timing, jitterMs, catchUp, overlap };
}

/**
 * The schedules of the deployed definitions, and the runs that they start. A planned time has one run, whose id it determines. A run that resumes
 * a run of a schedule belongs to the schedule, too.
 */
export function scheduleSource(runtime: WorkflowRuntime): ports.ScheduleSource {
  const { catalogue, startRun, runs, cancelRun } = runtime;
  const placeOf = (id: string) => id.split("/", 2) as [workflowId: string, name: string];
  const runIdOf = (id: string, plannedAt: number) => scheduledRunId(...placeOf(id), plannedAt);
  // Open runs that an earlier version started are only found by their ids.
  const isOpen = async (id: string, plannedAt: number) => {
    for await (const _open of runs.openOfSchedule(...placeOf(id))) return true;
    const run = await runs.find(runIdOf(id, plannedAt));
    return run !== undefined && !isTerminal(run.value.status);
  };
  return {
    name: SCHEDULE_SOURCE,
    list: async () => deployedSchedules(runtime).map(toSchedule),
    async start(id, plannedAt) {
      const [workflowId, name] = placeOf(id);
      const definition = catalogue.find(workflowId);
      const schedule = definition?.schedules.find((each) => each.name === name);
      // It was removed meanwhile.
      if (!schedule) return;
      const runId = runIdOf(id, plannedAt);
      try {
        const planned = { name, plannedAt: new Date(plannedAt).toISOString() };
        await startRun({ definition: definition!, parameters: schedule.parameters, runId, schedule: planned });
      } catch (error) {
        // It was started before, and the process died before that was written down.
        if (!(error instanceof ports.RecordConflict && (await runs.find(runId)))) throw error;
      }
    },
    isOpen,
    async stop(id, plannedAt, signal) {
      await cancelRun(runIdOf(id, plannedAt), OVERLAP);
      for await (const runId of runs.openOfSchedule(...placeOf(id))) {
        signal.throwIfAborted();
        await cancelRun(runId, OVERLAP);
      }
    },
  };
}
