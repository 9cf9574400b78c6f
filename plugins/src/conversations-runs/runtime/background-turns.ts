import { defineAdapter, optional, parseDuration, ports } from "@portico/core";
import * as v from "valibot";
import { agentRuntimePort } from "./agent-runtime.ts";
import { findAgentProblems } from "./agent-problems.ts";
import { createBackgroundRecords } from "../background/background-records.ts";
import {
  type AcceptedTurn,
  ASKED_TURN,
  BACKGROUND_TURN,
  keyedIdSuffix,
  turnIdOf,
  turnIds,
  workIdOf,
} from "../background/background-turn.ts";
import { createBackgroundWork } from "../background/background-work.ts";
import { createDeliveries } from "../background/deliveries.ts";
import { createPlannedRetries } from "../background/planned-retries.ts";
import { type BackgroundTurnsOptions, backgroundTurnsConfig } from "../config.ts";
import { memoryDefinitions } from "../memory/memory-tools.ts";
import { builtInDefinitions } from "../turns/built-in-tools.ts";
import { resourceDefinition } from "../turns/read-resource.ts";
import { newIdSuffix } from "../turns/turn.ts";
import { listTools } from "../execution/turn-tools.ts";

/** Turns of all agents that execute at once. */
const CONCURRENCY = 256;

/** Background turns on the runtime of queries: each is a run of its own, with a receipt, and agents take turns (open points 5 and 9). */
export const backgroundTurns = defineAdapter({
  name: "background-turns/agent-runtime",
  port: ports.backgroundTurns,
  needs: {
    runtime: agentRuntimePort,
    records: ports.records,
    log: ports.log,
    engine: ports.engine,
    agents: ports.agents,
    tools: ports.tools,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
    notifications: optional(ports.notifications),
  },
  open(given, options: BackgroundTurnsOptions): ports.BackgroundTurns {
    const { runtime, engine, agents, tools, clock, ids, telemetry } = given;
    const { running, executor, runs, waits, checks } = runtime;
    const { concurrencyPerAgent, timeoutMs, backgroundRetries } = v.parse(backgroundTurnsConfig, options);
    const delaysMs = backgroundRetries.map((written) => parseDuration(written)!);
    const deliveries = createDeliveries(given);
    const records = createBackgroundRecords({ ...given, runs, waits });
    const retries = createPlannedRetries({ engine, clock, records, delaysMs, kind: BACKGROUND_TURN });
    const work = createBackgroundWork({ ...given, executor, waits, records, retries, deliveries, timeoutMs });
    waits.onWake("background", async ({ turnId, runId, number: part }) => {
      const { turn, attempt } = (await records.openTurn(runId)) ?? {};
      if (turn)
        await engine.start(
          BACKGROUND_TURN,
          workIdOf(turnId, { attempt, part }),
          { ...turn, attempt, part },
          { key: turn.agentId },
        );
    });
    engine.define<AcceptedTurn, void>(BACKGROUND_TURN, work.run, {
      onInterrupted: "close",
      beginsWithBatch: true,
      closed: (_id, turn) => work.closed(turn),
      concurrencyPerKey: concurrencyPerAgent,
      concurrency: CONCURRENCY,
    });
    /** Ends a turn before it starts. If this fails, its work stays queued, and reports the end when its turn comes. */
    const leaveLine = async (turn: AcceptedTurn, reason: string): Promise<void> => {
      try {
        await work.notify(turn);
        await engine.cancel(workIdOf(turn.turnId, { attempt: turn.attempt }), reason);
        if (turn.attempt !== undefined) await retries.forget(turn.turnId, turn.attempt);
        await records.forgetStopped(turn.runId);
      } catch (error) {
        telemetry.log.warn("The end of a queued turn that was stopped will be reported later", { turn: turn.turnId }, error);
      }
    };
    /** Whether a turn is queued, executes, waits for a person, or is planned. */
    const isOpen = async (runId: string, turnId: string, reason: string): Promise<boolean> => {
      const workId = async () => workIdOf(turnId, (await records.openTurn(runId)) ?? {});
      for (let last: string | undefined; ;) {
        const now = await workId();
        // No code listens to this signal. Only its result tells whether the work is open, and whether it belongs to this process.
        if ((await engine.signal(now, "stop", reason)) || (await waits.find(turnId)) || (await records.isPlanned(runId)))
          return true;
        // It may have gone on, or begun to wait, between the two.
        if (now === last && now === (await workId())) return false;
        last = now;
      }
    };
    return {
      deliveries: deliveries.page,
      tools: (signal) =>
        listTools([...builtInDefinitions, ...memoryDefinitions, resourceDefinition], tools, telemetry.log, signal),
      problems: (agent, signal) => findAgentProblems({ agents, tools, checks }, signal)(agent),
      async start({ agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth, key, tell, againOf }) {
        if (tell && !isSignalName(tell.signal)) throw new TypeError("The engine does not accept the signal of a turn's end");
        const turn: AcceptedTurn = {
          ...turnIds(key === undefined ? newIdSuffix(ids, clock.now()) : keyedIdSuffix(key)),
          ...{ agentId, userId, prompt, toolIds, maxTurns, origin, workflowDepth, tell, againOf },
          traceparent: telemetry.traceparent(),
          acceptedAt: clock.now(),
        };
        // The engine remembers ended work for a day. A turn may wait for longer, and attempts may be planned for longer.
        const isLater = key !== undefined && (await records.isLater(turn.runId));
        if (!isLater) await engine.start(BACKGROUND_TURN, turn.turnId, turn, { key: agentId, records: records.accept(turn) });
        return { runId: turn.runId };
      },
      find: (key) => records.found(turnIds(keyedIdSuffix(key)).runId),
      async stop(runId, reason) {
        const turnId = turnIdOf(runId);
        if (turnId === undefined) return false;
        const kind = (await engine.status(turnId))?.kind ?? BACKGROUND_TURN;
        if (kind !== BACKGROUND_TURN && kind !== ASKED_TURN) return false;
        if (!(await isOpen(runId, turnId, reason))) {
          await records.forgetStopped(runId);
          return false;
        }
        const stopped = await records.stop(runId, reason);
        if (typeof stopped === "object") {
          await leaveLine(stopped.turn, reason);
          return stopped.isStoppedNow;
        }
        if (!stopped) return false;
        running.stopAnywhere({ turnId }, reason);
        const wait = await waits.find(turnId);
        if (wait) await waits.wake(wait);
        return records.isStopped(runId, reason);
      },
    };
  },
});

/** The engine's law of names: what breaks it would only come out when the turn has ended. */
function isSignalName(name: string): boolean {
  return name.length >= 1 && name.length <= 512 && name.isWellFormed() && !name.includes("\0");
}
