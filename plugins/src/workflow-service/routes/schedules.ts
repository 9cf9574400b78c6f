import { auditActor, faultySchedule, ports, type RequestHead, toScheduleAnswer } from "@portico/core";
import { workflowErrors } from "../contracts/errors.ts";
import { isTerminal, type RunStatus } from "../contracts/run-state.ts";
import { isOverflow, toServiceError } from "../service/start-runs.ts";
import { toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import type { Definition, WorkflowSchedule } from "../definition/definition.ts";
import { scheduledRunId } from "../runs/run-id.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";

interface ScheduleParams {
  readonly id: string;
  readonly name: string;
}

const NO_SCHEDULES = "This service has no adapter of the port schedules";

/** The name of this source of schedules. */
const SCHEDULE_SOURCE = "workflows";

/** Runs that resume each other, of which the newest says how a planned time ended. */
const MOST_RESUMES = 10;
/** Only a person continues an interrupted run, so it counts as failed. */
const OUTCOMES: Partial<Record<RunStatus, "completed" | "stopped">> = { completed: "completed", cancelled: "stopped" };

/** Why a run was cancelled whose schedule has the overlap `cancel`. */
const OVERLAP = "schedule_overlap";

/** Lists the schedules that are switched on. */
export function listSchedules({ runtime, schedules }: WorkflowServices): WorkflowHandlers["schedules"] {
  return async () => {
    const shown = deployedSchedules(runtime).map(async (deployed) => {
      const { definition, schedule } = deployed;
      const of = { workflowId: definition.id, name: schedule.name };
      if (!schedules) return { ...of, ...faultySchedule(schedule.timing, NO_SCHEDULES) };
      try {
        const state = await schedules.state(SCHEDULE_SOURCE, toSchedule(deployed));
        const lastRefused = await runtime.slots.lastRefused(idOf(deployed));
        return { ...of, ...toScheduleAnswer(schedule.timing, state), ...(lastRefused && { lastRefused }) };
      } catch (error) {
        if (!(error instanceof RangeError)) return toStoreError(error);
        return { ...of, ...faultySchedule(schedule.timing, error.message) };
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

/**
 * The schedules of the deployed definitions, and the runs that they start. A planned time has one run, whose id it determines. A run that resumes
 * a run of a schedule belongs to the schedule, too.
 */
export function scheduleSource(runtime: WorkflowRuntime): ports.ScheduleSource {
  const { catalogue, startRun, runs, slots, cancelRun } = runtime;
  const partsOf = (id: string) => id.split("/", 2) as [workflowId: string, name: string];
  const runIdOf = (id: string, plannedAt: number) => scheduledRunId(...partsOf(id), plannedAt);
  const isOpen = async (id: string) => {
    for await (const _open of runs.openOfSchedule(...partsOf(id))) return true;
    return false;
  };
  return {
    name: SCHEDULE_SOURCE,
    list: async () => deployedSchedules(runtime).map(toSchedule),
    async start(id, plannedAt) {
      const [workflowId, name] = partsOf(id);
      const definition = catalogue.find(workflowId);
      const schedule = definition?.schedules.find((each) => each.name === name);
      // It was removed meanwhile.
      if (!schedule) return;
      const runId = runIdOf(id, plannedAt);
      try {
        const planned = { name, plannedAt: toText(plannedAt) };
        await startRun({ definition: definition!, parameters: schedule.parameters, runId, schedule: planned });
      } catch (error) {
        // The limit of the definition refuses this time. A repetition would start it too late.
        if (isOverflow(error)) return slots.noteRefused(id, { plannedAt: toText(plannedAt), code: error.code });
        // It was started before, and the process died before that was written down.
        if (!(error instanceof ports.RecordConflict && (await runs.find(runId)))) throw error;
      }
    },
    isOpen,
    async stop(id, plannedAt, signal) {
      await cancelRun(runIdOf(id, plannedAt), OVERLAP);
      for await (const runId of runs.openOfSchedule(...partsOf(id))) {
        signal.throwIfAborted();
        await cancelRun(runId, OVERLAP);
      }
    },
    async outcome(id, plannedAt) {
      let found = await runs.find(runIdOf(id, plannedAt));
      for (let resumes = 0; found?.value.resumedBy && resumes < MOST_RESUMES; resumes++)
        found = (await runs.find(found.value.resumedBy.runId)) ?? found;
      if (!found) return undefined;
      const { runId, status, completedAt, startedAt } = found.value;
      if (!isTerminal(status)) return { runId, status: "open" };
      return { runId, status: OUTCOMES[status] ?? "failed", at: Date.parse(completedAt ?? startedAt) };
    },
  };
}

/** What operators are told of: schedules that fail. */
export function failingSchedules(runtime: WorkflowRuntime, schedules: ports.Schedules): ports.NotificationSource {
  return {
    name: "workflow-schedules",
    kind: "schedule.failing",
    async look({ scheduleFailures }) {
      const states = deployedSchedules(runtime).map(async (deployed) => {
        const { definition, schedule } = deployed;
        const state = await schedules.state(SCHEDULE_SOURCE, toSchedule(deployed)).catch(undefinedIfInvalid);
        if (!state || state.failures < scheduleFailures) return [];
        const { failures, ended } = state;
        const of = { service: "workflow", workflowId: definition.id, workflowName: definition.name, schedule: schedule.name };
        return [{ id: idOf(deployed), data: { ...of, failures, ...(ended && { runId: ended.runId }) }, page: ["schedules"] }];
      });
      return (await Promise.all(states)).flat();
    },
  };
}

/** A schedule whose timing is not valid starts nothing. */
function undefinedIfInvalid(error: unknown): undefined {
  if (!(error instanceof RangeError)) throw error;
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

/** A schedule of a deployed definition. */
interface DeployedSchedule {
  readonly definition: Definition;
  readonly schedule: WorkflowSchedule;
}

/** All schedules of the deployed definitions that are switched on. */
function deployedSchedules({ catalogue }: Pick<WorkflowRuntime, "catalogue">): readonly DeployedSchedule[] {
  return catalogue
    .list()
    .flatMap((definition) => definition.schedules.map((schedule) => ({ definition, schedule })))
    .filter(({ schedule }) => schedule.enabled);
}

/** The id of a schedule in its source. */
const idOf = ({ definition, schedule }: DeployedSchedule): string => `${definition.id}/${schedule.name}`;

/** A schedule as the port gets it. */
function toSchedule(deployed: DeployedSchedule): ports.Schedule {
  const { timing, jitterMs, catchUp, overlap = "queue" } = deployed.schedule;
  return { id: idOf(deployed), timing, jitterMs, catchUp, overlap };
}
