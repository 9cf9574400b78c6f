import { auditActor, auditWriter, callerOf, definePlugin, optional, ownerScheme, ports } from "@portico/core";
import { agentSource, idOf, schedulesOf, SOURCE, startTurn, toSchedule } from "./agent-source.ts";
import { agentSchedulesConfig } from "./config.ts";
import { agentSchedulesContract } from "./contract.ts";
import { scheduleErrors } from "./errors.ts";

/** Starts turns of agents at planned times, and `/api/schedules` on surface `agent`, for the owner. */
export const agentSchedules = definePlugin({
  name: "agent-schedules",
  summary: "Turns of agents at planned times: their next times, a start by hand, and pauses.",
  config: agentSchedulesConfig,
  needs: {
    schedules: ports.schedules,
    agents: ports.agents,
    turns: ports.backgroundTurns,
    identity: ports.identity,
    clock: ports.clock,
    records: ports.records,
    audit: optional(ports.audit),
  },
  contract: agentSchedulesContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({
    async owner(head, signal) {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw scheduleErrors.unauthorized();
      if (caller.role !== "owner") throw scheduleErrors.owner_required();
      return caller;
    },
  }),
  setup(given) {
    const { schedules, agents } = given;
    schedules.define(agentSource(given));
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
        const all = (await agents.list({ withGit: false })).flatMap(schedulesOf).filter(({ schedule }) => schedule.enabled);
        const shown = all.map(async (own) => {
          const { agentId, name, schedule } = own;
          const known = { agentId, name, ...schedule.timing };
          try {
            const { isPaused, next, last, waiting } = await schedules.state(SOURCE, toSchedule(own));
            return {
              ...{ ...known, paused: isPaused, next: next.map(toText) },
              ...(last !== undefined && { last: toText(last) }),
              ...(waiting !== undefined && { waiting }),
            };
          } catch (error) {
            if (!(error instanceof RangeError)) throw error;
            return { ...known, paused: false, next: [], fault: error.message };
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

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
