import { deprecate } from "node:util";
import { defineAdapter, definePort, optional, type Port, ports } from "@portico/core";
import * as v from "valibot";
import { type AgentRuntimeOptions, agentRuntimeConfig } from "./config.ts";
import { type ClearInput, createClearing } from "./conversations/clearing.ts";
import { type Conversations, createConversations, workKind } from "./conversations/conversations.ts";
import { openQueryChannel, type QueryChannel } from "./delivery/query-channel.ts";
import { createDeliveries } from "./background/deliveries.ts";
import { toldEnd } from "./background/told-end.ts";
import { Hints } from "./hints.ts";
import { DELEGATION_DEPTH } from "./limits.ts";
import { type Admission, createAdmission } from "./requests/admission.ts";
import { type ClientRequests, openClientRequests, requestKey } from "./requests/client-requests.ts";
import { lastReceipt } from "./runs/receipts.ts";
import { createRemovedRuns } from "./runs/removed-runs.ts";
import { RUNS_INDEXING } from "./runs/index-runs.ts";
import { createRuns, type Runs } from "./runs/runs.ts";
import { createSweepRuns, RUNS_SWEEP } from "./runs/sweep-runs.ts";
import { registerProcess } from "./living-processes.ts";
import { sharedPorts } from "./shared-ports.ts";
import { BusyAgents } from "./turns/busy-agents.ts";
import type { Delegate } from "./turns/built-in-tools.ts";
import { Delegations } from "./turns/delegation.ts";
import { createShownRoom, type ShownRoom } from "./turns/shown-room.ts";
import type { Turn } from "./turns/turn.ts";
import { createTurnLimits, type TurnLimits } from "./turns/turn-limits.ts";
import { TurnDesk } from "./turns/turn-desk.ts";
import { createTurnRecords } from "./turns/turn-records.ts";
import { createTurnWork } from "./turns/turn-work.ts";

/** The parts that this area's plugin and adapters share: everything that turns need. */
export interface AgentRuntime {
  readonly serverInstanceId: string;
  readonly requests: ClientRequests;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly busy: BusyAgents;
  readonly desk: TurnDesk;
  readonly admission: Admission;
  readonly limits: TurnLimits;
  readonly clearing: ReturnType<typeof createClearing>;
  readonly channel: QueryChannel;
  readonly delegate: Delegate;
  /** The users' uploads, if the instance accepts files. */
  readonly files: ports.UserFiles | undefined;
  /** The memory limit for files that all turns together show. */
  readonly shownRoom: ShownRoom;
  /** Stop one turn, whether it executes or waits. */
  readonly stopTurn: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => Promise<void>;
}

/** Filled by `agentRuntime`. */
export const agentRuntimePort: Port<AgentRuntime> = definePort<AgentRuntime>("conversations-runs/runtime");

const warnOfTurnRuntime = deprecate(() => {}, "turnRuntime is now agentRuntimePort", "PORTICO_TURN_RUNTIME");

/** @deprecated `AgentRuntime`. Will be removed in the next minor version. */
export type TurnRuntime = AgentRuntime;

/** @deprecated `agentRuntimePort`. Warns when an app reads it, and will be removed in the next minor version. */
export const turnRuntime: Port<AgentRuntime> = {
  ...agentRuntimePort,
  get id() {
    warnOfTurnRuntime();
    return agentRuntimePort.id;
  },
};

const SWEEP_MS = 60_000;
/** Turns that execute at once; most of their time they wait for a model. */
const CONCURRENCY = 1024;

/**
 * The runtime of turns: durable queries, their execution, and the realtime channel (specification 4.6). The area's plugin shows it to the
 * outside, and `backgroundTurns` gives it to other areas. Takes up the accepted work when the app is ready.
 */
export const agentRuntime = defineAdapter({
  name: "conversations-runs/agent-runtime",
  port: agentRuntimePort,
  needs: {
    records: ports.records,
    log: ports.log,
    engine: ports.engine,
    realtime: ports.realtime,
    bus: optional(ports.bus),
    presence: optional(ports.presence),
    identity: ports.identity,
    secrets: ports.secrets,
    agents: ports.agents,
    agentEngines: ports.agentEngines,
    models: ports.models,
    tools: ports.tools,
    userFiles: ports.userFiles,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    usage: optional(ports.usage),
  },
  async open(given, options: AgentRuntimeOptions, scope): Promise<AgentRuntime> {
    const { records, log, engine, agents, clock, ids, telemetry } = given;
    const shared = sharedPorts(given);
    const [files] = given.userFiles;
    const settings = v.parse(agentRuntimeConfig, options);
    const serverInstanceId = ids.uuid();
    const isAlive = registerProcess({ ...shared, serverInstanceId }, scope);
    const requests = await openClientRequests({ ...given, settings, serverInstanceId, isAlive });
    const runs = createRuns(records);
    await runs.indexing.prepare(clock.now());
    const conversations = createConversations(records);
    const hints = new Hints(shared, clock);
    const busy = new BusyAgents({ ...shared, clock, process: serverInstanceId }, scope);
    const desk = new TurnDesk({ ...shared, busy, log: telemetry.log }, scope);
    const shownRoom = createShownRoom({ bytes: settings.shownBytes, clock });
    const turnRecords = createTurnRecords({ log, requests, runs, conversations, clock, ids, files, serverInstanceId });
    const limits = createTurnLimits({ ...given, isShared: engine.isShared, limits: settings.limits });
    const admission = createAdmission({ limits, engine, requests, conversations, runs, clock, ids, telemetry });

    /** Stop one turn, whether it executes or still waits. */
    const stopTurn = async (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => {
      const { userId, sessionId, clientRequestId } = turn;
      if (desk.stop({ sessionId, clientRequestId }, "user_stop")) return;
      const state = await turnRecords.stop(userId, clientRequestId, sessionId, "user_stop");
      if (state === "executes") desk.stopAnywhere({ sessionId, clientRequestId }, "user_stop");
    };
    const stopSession = (sessionId: string) => desk.stopAnywhere({ sessionId }, "user_stop");
    const channel = openQueryChannel({ ...given, ...shared, requests, runs, serverInstanceId, stopSession, stopTurn }, scope);
    const delegations = new Delegations({
      agents,
      admission,
      ids,
      hints,
      endOf: async ({ userId, clientRequestId, runId }) => {
        const request = (await requests.find(requestKey(userId, clientRequestId)))?.value;
        if (request && request.endedAt === undefined) return undefined;
        const [run, receipt] = await Promise.all([runs.find(runId), lastReceipt(log, runId)]);
        return toldEnd(runId, run?.value, receipt);
      },
      stop: (turn) =>
        void stopTurn(turn).catch((error: unknown) => telemetry.log.error("A delegated turn could not be stopped", {}, error)),
    });
    const { delegate } = delegations;
    const work = createTurnWork({
      ...given,
      files,
      shownRoom,
      records: turnRecords,
      desk,
      limits,
      audiences: channel.audiences,
      delegate,
    });
    const clearing = createClearing({
      ...{ engine, log, clock, ids, conversations, runs, hints },
      interrupt: (sessionId) => desk.stopAnywhere({ sessionId }, "conversation_cleared"),
    });

    for (let depth = 0; depth <= DELEGATION_DEPTH; depth++) {
      engine.define<Turn | ClearInput, void>(
        workKind(depth),
        async (context, input) => {
          if ("clear" in input) return clearing.finish(input, context.signal);
          let end: Awaited<ReturnType<typeof work.run>> | undefined;
          try {
            end = await work.run(context, input);
          } finally {
            delegations.tell(input, end);
          }
        },
        {
          onInterrupted: "close",
          beginsWithBatch: true,
          closed: async (_id, input) => {
            if ("clear" in input) return clearing.finish(input);
            await work.closed(input);
            delegations.tell(input, undefined);
          },
          concurrency: CONCURRENCY,
        },
      );
    }
    engine.chore("sweep-client-requests", { everyMs: SWEEP_MS, firstMs: SWEEP_MS }, (signal) => requests.sweep(signal));
    engine.chore("index-runs", RUNS_INDEXING, (signal) => runs.indexing.run(() => clock.now(), signal));
    engine.chore(
      "sweep-runs",
      RUNS_SWEEP,
      createSweepRuns({
        ...{ runs, conversations, agents, engine, clock, ...settings },
        keepRunsMs: settings.keepRunsMs,
        removed: createRemovedRuns({ records, log, runs, conversations }),
        deliveries: createDeliveries(given),
      }),
    );
    scope.onReady(() => engine.ready());
    return {
      serverInstanceId,
      requests,
      runs,
      conversations,
      busy,
      desk,
      admission,
      limits,
      clearing,
      channel,
      delegate,
      files,
      shownRoom,
      stopTurn,
    };
  },
});
