import {
  auditActor,
  auditWriter,
  definePlugin,
  faultySchedule,
  optional,
  ownerGuard,
  ownerScheme,
  ports,
  toScheduleAnswer,
} from "@portico/core";
import * as v from "valibot";
import { agentSchedulesContract, scheduleErrors } from "./contract.ts";

/** The name of this source of schedules. */
const SOURCE = "agents";
/** The schedule that `heartbeat` of an `agent.json` means. */
const HEARTBEAT = "heartbeat";
const ORIGIN = "schedule";
/** Why a turn was stopped whose schedule has the overlap `cancel`. */
const OVERLAP = "schedule_overlap";
/** Reasons of turns that no user stopped: their work is not done. */
const UNDONE: readonly (string | undefined)[] = ["limit_reached", "time_limit", "system_suspension"];
/** How long a list of schedules is used: agents may be kept in a store that is slow to list. */
const LISTED_MS = 5000;
/** A heartbeat is no more frequent than this. */
const SHORTEST_MS = 1000;

/** Starts turns of agents at planned times, and `/api/schedules` on surface `agent`, for the owner. */
export const agentSchedules = definePlugin({
  name: "agent-schedules",
  summary: "Turns of agents at planned times: their next times, a start by hand, and pauses.",
  config: v.strictObject({}),
  needs: {
    schedules: ports.schedules,
    agents: ports.agents,
    turns: ports.backgroundTurns,
    identity: ports.identity,
    clock: ports.clock,
    records: ports.records,
    audit: optional(ports.audit),
    notifications: optional(ports.notifications),
  },
  contract: agentSchedulesContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({ owner: ownerGuard(identity, scheduleErrors) }),
  setup(given) {
    const { schedules, agents } = given;
    schedules.define(agentSource(given));
    const listed = async () =>
      (await agents.list({ withGit: false })).flatMap(schedulesOf).filter(({ schedule }) => schedule.enabled);
    given.notifications?.define({
      name: "agent-schedules",
      kind: "schedule.failing",
      async look({ scheduleFailures }) {
        const states = (await listed()).map(async (own) => {
          const { agentId, name } = own;
          const state = await schedules.state(SOURCE, toSchedule(own)).catch(undefinedIfInvalid);
          if (!state || state.failures < scheduleFailures) return [];
          const { failures, ended } = state;
          const data = { service: "agent", agentId, schedule: name, failures, ...(ended && { runId: ended.runId }) };
          return [{ id: idOf(own), data, page: ["schedules"] }];
        });
        return (await Promise.all(states)).flat();
      },
    });
    const audit = auditWriter(given.audit, given.records);
    const find = async ({ agentId, name }: { readonly agentId: string; readonly name: string }) => {
      const agent = await agents.find(agentId);
      const own = agent && schedulesOf(agent).find((each) => each.name === name);
      if (!own) throw scheduleErrors.unknown_schedule();
      return own;
    };
    const pause = async (
      params: { readonly agentId: string; readonly name: string },
      isPaused: boolean,
      who: ports.AuditActor,
    ) => {
      const id = idOf(await find(params));
      const fact = { action: isPaused ? "schedule.pause" : "schedule.resume", object: id, who };
      await audit.attempt(fact, () => schedules.pause(SOURCE, id, isPaused));
      return { ok: true as const };
    };
    return {
      async list() {
        const shown = (await listed()).map(async (own) => {
          const { agentId, name, schedule } = own;
          const of = { agentId, name };
          try {
            return { ...of, ...toScheduleAnswer(schedule.timing, await schedules.state(SOURCE, toSchedule(own))) };
          } catch (error) {
            if (!(error instanceof RangeError)) throw error;
            return { ...of, ...faultySchedule(schedule.timing, error.message) };
          }
        });
        return { schedules: await Promise.all(shown) };
      },
      async trigger({ params, who, head, signal, fail }) {
        const own = await find(params);
        const fact = { action: "schedule.trigger", object: idOf(own), who: auditActor(who, head) };
        return audit.attempt(fact, async () => {
          const started = await startTurn(given, own, undefined, signal);
          if (!started) throw fail.no_owner();
          return started;
        });
      },
      pause: ({ params, who, head }) => pause(params, true, auditActor(who, head)),
      resume: ({ params, who, head }) => pause(params, false, auditActor(who, head)),
    };
  },
});

/** One schedule of an agent. */
interface OwnSchedule {
  readonly agentId: string;
  readonly name: string;
  readonly schedule: ports.AgentSchedule;
}

/** All schedules of an agent, also those that are switched off. An agent that cannot be used has none. */
function schedulesOf({ id: agentId, definition, metadataError }: ports.Agent): readonly OwnSchedule[] {
  if (metadataError) return [];
  const { schedules = [], heartbeat } = definition;
  const beat = heartbeat && {
    name: HEARTBEAT,
    timing: { everyMs: Math.max(heartbeat.everyMs, SHORTEST_MS) },
    prompt: heartbeat.prompt,
    enabled: heartbeat.enabled,
    // What a heartbeat missed is of no use later.
    catchUp: 0,
  };
  return [...(beat ? [beat] : []), ...schedules].map((schedule) => ({ agentId, name: schedule.name, schedule }));
}

/** The id of a schedule in its source. */
const idOf = ({ agentId, name }: Pick<OwnSchedule, "agentId" | "name">): string => `${agentId}/${name}`;

/** A schedule as the port gets it. */
function toSchedule(own: OwnSchedule): ports.Schedule {
  const { timing, jitterMs, catchUp, overlap = "queue" } = own.schedule;
  return { id: idOf(own), timing, jitterMs, catchUp, overlap };
}

/** A schedule whose timing is not valid starts nothing. */
function undefinedIfInvalid(error: unknown): undefined {
  if (!(error instanceof RangeError)) throw error;
}

interface StartGiven {
  readonly turns: ports.BackgroundTurns;
  readonly identity: ports.Identity;
}

/** Starts a turn for the instance's owner. The same key starts it once. Undefined if the instance has no owner. */
async function startTurn(
  { turns, identity }: StartGiven,
  { agentId, name, schedule }: OwnSchedule,
  key: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly runId: string } | undefined> {
  const userId = await identity.instanceOwner(signal);
  if (userId === undefined) return undefined;
  const { prompt, toolIds, maxTurns } = schedule;
  return turns.start({ agentId, userId, prompt, toolIds, maxTurns, origin: { origin: ORIGIN, displayName: name }, key });
}

/** The schedules of all agents, and the turns that they start. A change of an agent counts after at most five seconds. */
function agentSource(given: StartGiven & { readonly agents: ports.Agents; readonly clock: ports.Clock }): ports.ScheduleSource {
  const { agents, clock, turns } = given;
  const keyOf = (id: string, plannedAt: number) => `${ORIGIN}:${id}:${plannedAt}`;
  let listed: { readonly at: number; readonly schedules: readonly ports.Schedule[] } | undefined;
  return {
    name: SOURCE,
    async list() {
      const at = clock.now();
      // A clock may step back.
      if (listed && Math.abs(at - listed.at) < LISTED_MS) return listed.schedules;
      const all = (await agents.list({ withGit: false })).flatMap(schedulesOf);
      listed = { at, schedules: all.filter(({ schedule }) => schedule.enabled).map(toSchedule) };
      return listed.schedules;
    },
    async start(id, plannedAt, signal) {
      const agent = await agents.find(id.split("/", 1)[0]!);
      const own = agent && schedulesOf(agent).find((each) => idOf(each) === id);
      // It was removed meanwhile.
      if (own) await startTurn(given, own, keyOf(id, plannedAt), signal);
    },
    isOpen: async (id, plannedAt) => (await turns.find(keyOf(id, plannedAt)))?.isOpen ?? false,
    async stop(id, plannedAt) {
      const found = await turns.find(keyOf(id, plannedAt));
      if (found?.isOpen) await turns.stop(found.runId, OVERLAP);
    },
    async outcome(id, plannedAt) {
      const found = await turns.find(keyOf(id, plannedAt));
      if (!found) return undefined;
      const { runId, end } = found;
      if (!end) return { runId, status: "open" };
      const isFailed = end.status === "interrupted" && UNDONE.includes(end.reason);
      return { runId, status: isFailed ? "failed" : end.status === "interrupted" ? "stopped" : end.status, at: end.at };
    },
  };
}
