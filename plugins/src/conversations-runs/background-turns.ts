import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";
import { turnRuntime } from "./agent-runtime.ts";
import { createBackgroundRecords } from "./background/background-records.ts";
import type { AcceptedTurn } from "./background/background-turn.ts";
import { createBackgroundWork } from "./background/background-work.ts";
import { createDeliveries } from "./background/deliveries.ts";
import { type BackgroundTurnsOptions, backgroundTurnsConfig } from "./config.ts";
import { builtInDefinitions } from "./turns/built-in-tools.ts";
import { newEnd } from "./turns/new-end.ts";
import { listTools } from "./turns/turn-tools.ts";

const KIND = "background-turn";
/** Turns of all agents that execute at once. */
const CONCURRENCY = 256;

/** Background turns on the runtime of queries: each is a run of its own, with a receipt, and agents take turns (open points 5 and 9). */
export const backgroundTurns = defineAdapter({
  name: "background-turns/agent-runtime",
  port: ports.backgroundTurns,
  needs: {
    runtime: turnRuntime,
    log: ports.log,
    engine: ports.engine,
    agents: ports.agents,
    agentEngines: ports.agentEngines,
    models: ports.models,
    tools: ports.tools,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
  },
  open(given, options: BackgroundTurnsOptions): ports.BackgroundTurns {
    const { runtime, engine, tools, clock, ids, telemetry } = given;
    const { desk, runs, delegate, files, shownRoom } = runtime;
    const { concurrencyPerAgent, timeoutMs } = v.parse(backgroundTurnsConfig, options);
    const deliveries = createDeliveries(given);
    const records = createBackgroundRecords({ ...given, runs });
    const work = createBackgroundWork({ ...given, records, deliveries, desk, delegate, files, shownRoom, timeoutMs });
    engine.define<AcceptedTurn, void>(KIND, work.run, {
      onInterrupted: "close",
      closed: (_id, turn) => work.closed(turn),
      concurrencyPerKey: concurrencyPerAgent,
      concurrency: CONCURRENCY,
    });
    return {
      deliveries: deliveries.page,
      tools: (signal) => listTools(builtInDefinitions, tools, telemetry.log, signal),
      async start({ agentId, userId, prompt, toolIds, maxTurns, origin }) {
        const end = newEnd(ids, clock.now());
        const runId = `run_${end}`;
        const turn: AcceptedTurn = {
          turnId: `turn_${end}`,
          sessionId: `ses_${end}`,
          ...{ runId, agentId, userId, prompt, toolIds, maxTurns, origin },
        };
        await engine.start(KIND, turn.turnId, turn, { key: agentId });
        return { runId };
      },
    };
  },
});
