import { auditActor, type RequestHead } from "@portico/core";
import { workflowErrors } from "../errors.ts";
import { deployedSchedules, type DeployedSchedule, idOf, SCHEDULE_SOURCE, toSchedule } from "../service/schedule-source.ts";
import { toServiceError } from "../service/start-runs.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

interface ScheduleParams {
  readonly id: string;
  readonly name: string;
}

const NO_SCHEDULES = "This service has no adapter of the port schedules";

/** Lists the schedules that are switched on. */
export function listSchedules({ runtime, schedules }: WorkflowServices): WorkflowHandlers["schedules"] {
  return async () => {
    const shown = deployedSchedules(runtime).map(async (deployed) => {
      const { definition, schedule } = deployed;
      const known = { workflowId: definition.id, name: schedule.name, ...schedule.timing };
      if (!schedules) return { ...known, paused: false, next: [], fault: NO_SCHEDULES };
      try {
        const { isPaused, next, last, waiting } = await schedules.state(SCHEDULE_SOURCE, toSchedule(deployed));
        return {
          ...{ ...known, paused: isPaused, next: next.map(toText) },
          ...(last !== undefined && { last: toText(last) }),
          ...(waiting !== undefined && { waiting }),
        };
      } catch (error) {
        if (!(error instanceof RangeError)) return toStoreError(error);
        return { ...known, paused: false, next: [], fault: error.message };
      }
    });
    return { schedules: await Promise.all(shown) };
  };
}

/** Starts a run with the parameters of a schedule. */
export function triggerSchedule({ runtime, audit }: WorkflowServices): WorkflowHandlers["triggerSchedule"] {
  return async ({ params, head }) => {
    const found = findSchedule(runtime, params);
    const { definition, schedule } = found;
    const { name, parameters } = schedule;
    const start = () => runtime.startRun({ definition, parameters, schedule: { name } });
    const fact = { action: "workflow-schedule.trigger", object: idOf(found), who: auditActor({ role: "workflow" }, head) };
    try {
      return { ...(await (audit?.attempt(fact, start) ?? start())), status: "started" };
    } catch (error) {
      throw toServiceError(error);
    }
  };
}

/** Starts no more runs of a schedule at planned times. */
export function pauseSchedule(services: WorkflowServices): WorkflowHandlers["pauseSchedule"] {
  return ({ params, head }) => setPaused(services, params, head, true);
}

/** Starts runs of a paused schedule at planned times again. */
export function resumeSchedule(services: WorkflowServices): WorkflowHandlers["resumeSchedule"] {
  return ({ params, head }) => setPaused(services, params, head, false);
}

async function setPaused(
  { runtime, schedules, audit }: WorkflowServices,
  params: ScheduleParams,
  head: RequestHead,
  isPaused: boolean,
): Promise<{ readonly ok: true }> {
  const id = idOf(findSchedule(runtime, params));
  if (!schedules) throw workflowErrors.schedules_unavailable();
  const change = () => schedules.pause(SCHEDULE_SOURCE, id, isPaused);
  const action = isPaused ? "workflow-schedule.pause" : "workflow-schedule.resume";
  const fact = { action, object: id, who: auditActor({ role: "workflow" }, head) };
  await (audit?.attempt(fact, change) ?? change()).catch(toStoreError);
  return { ok: true };
}

function findSchedule(runtime: WorkflowServices["runtime"], { id, name }: ScheduleParams): DeployedSchedule {
  const found = deployedSchedules(runtime).find(({ definition, schedule }) => definition.id === id && schedule.name === name);
  if (!found) throw workflowErrors.unknown_schedule();
  return found;
}

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
