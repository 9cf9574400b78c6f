import { auditWriter, defineAdapter, definePort, keepingMs, optional, type Port, ports } from "@portico/core";
import { ListChanges, registerProcess, SchemaChecks, sharedPorts } from "@portico/core/kit";
import * as v from "valibot";
import { type Consents, createConsents } from "../approvals/consents.ts";
import { createTendWaits, WAITS_TENDED } from "../approvals/tend-waits.ts";
import { createTurnWaits, type TurnWaits, wakeSignal } from "../approvals/turn-waits.ts";
import { type AgentRuntimeOptions, agentRuntimeConfig } from "../config.ts";
import { type ClearInput, createClearing } from "../conversations/clearing.ts";
import { type Conversations, createConversations, workKind } from "../conversations/conversations.ts";
import { openQueryChannel, type QueryChannel } from "../delivery/query-channel.ts";
import { createTurnExecutor, type TurnExecutor } from "../execution/execute-turn.ts";
import { createDeliveries } from "../background/deliveries.ts";
import { lastReceipt, toldEnd } from "../runs/receipts.ts";
import { Hints } from "../hints.ts";
import { DELEGATION_DEPTH } from "../limits.ts";
import { createMemories } from "../memory/memories.ts";
import { type Admission, createAdmission } from "../queries/admission.ts";
import { type ClientRequests, openClientRequests, requestKey } from "../requests/client-requests.ts";
import { Delegations } from "../queries/delegation.ts";
import { createQueryRecords } from "../queries/query-records.ts";
import { createQueryWork } from "../queries/query-work.ts";
import { createRemovedRuns } from "../retention/removed-runs.ts";
import { createRuns, type Runs } from "../runs/runs.ts";
import { defineNotifiedStates } from "./notified-states.ts";
import { createSweepRuns, RUNS_SWEEP } from "../retention/sweep-runs.ts";
import { createShownRoom } from "../turns/shown-files.ts";
import { untilInterruptedClosed } from "../queries/interrupted-runs.ts";
import type { Turn } from "../turns/turn.ts";
import { OpenTurns } from "../turns/open-turns.ts";
import { createTurnLimits, type TurnLimits } from "../turns/turn-limits.ts";
import { RunningTurns } from "../turns/running-turns.ts";
import { type ArgumentsFault, createArgumentsFault } from "../turns/tool-arguments.ts";

/** The parts that this area's plugin and adapters share: everything that turns need. */
export interface AgentRuntime {
  readonly serverInstanceId: string;
  /** Whether the process with this ID lives. Undefined if that cannot be known now. */
  readonly isAlive: (serverInstanceId: string) => Promise<boolean | undefined>;
  readonly requests: ClientRequests;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly openTurns: OpenTurns;
  readonly running: RunningTurns;
  readonly admission: Admission;
  readonly clearing: ReturnType<typeof createClearing>;
  readonly channel: QueryChannel;
  readonly executor: TurnExecutor;
  readonly limits: TurnLimits;
  /** The users' uploads, if the instance accepts files. */
  readonly files: ports.UserFiles | undefined;
  /** Stop one turn, whether it executes or waits. */
  readonly stopTurn: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => Promise<void>;
  /** Turns that wait for a person, and what they ask. */
  readonly waits: TurnWaits;
  /** Tells the followers of open approvals when they change. */
  readonly approvalChanges: ListChanges;
  readonly consents: Consents;
  readonly argumentsFault: ArgumentsFault;
  /** Checks by JSON Schemas from outside. */
  readonly checks: SchemaChecks;
}

/** Filled by `agentRuntime`. */
export const agentRuntimePort: Port<AgentRuntime> = definePort<AgentRuntime>("conversations-runs/runtime");

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
    notifications: optional(ports.notifications),
    audit: optional(ports.audit),
  },
  async open(given, options: AgentRuntimeOptions, scope): Promise<AgentRuntime> {
    const { records, log, engine, agents, clock, ids, telemetry } = given;
    const models = given.models.filter(({ servesAgents }) => !servesAgents);
    const shared = sharedPorts(given);
    const [files] = given.userFiles;
    const settings = v.parse(agentRuntimeConfig, options);
    const serverInstanceId = ids.uuid();
    const isAlive = registerProcess(shared, { area: "conversations-runs", id: serverInstanceId }, scope);
    const requests = await openClientRequests({ ...given, settings, serverInstanceId, isAlive });
    const runs = createRuns(records);
    const checks = new SchemaChecks(clock);
    scope.onClose(() => checks.close());
    const argumentsFault = createArgumentsFault(checks);
    const conversations = createConversations(records);
    const hints = new Hints(shared, clock);
    const running = new RunningTurns({ ...shared, log: telemetry.log }, scope);
    const shownRoom = createShownRoom({ bytes: settings.shownBytes, clock });
    const approvalChanges = new ListChanges({ bus: shared.bus, clock, topic: "conversations-runs/approvals" });
    const waits = createTurnWaits({ records, runs, changes: approvalChanges });
    const consents = createConsents(records);
    waits.onWake("query", async ({ turnId, number }) => void (await engine.signal(turnId, wakeSignal(number), null)));
    const queryRecords = createQueryRecords({ ...given, waits, requests, runs, conversations, files, serverInstanceId });
    const openTurns = new OpenTurns({ ...shared, clock, process: serverInstanceId }, scope);
    const limits = createTurnLimits({ ...given, openTurns, limits: settings.limits });
    const admission = createAdmission({ log, limits, engine, requests, conversations, runs, clock, ids, telemetry });

    /** Stop one turn, whether it executes or still waits. */
    const stopTurn = async (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => {
      const { userId, sessionId, clientRequestId } = turn;
      if (running.stop({ sessionId, clientRequestId }, "user_stop")) return;
      const state = await queryRecords.stop(userId, clientRequestId, sessionId, "user_stop");
      if (state === "executes") running.stopAnywhere({ sessionId, clientRequestId }, "user_stop");
      if (typeof state !== "object") return;
      const wait = await waits.find(state.turnId);
      if (wait) await waits.wake(wait);
    };
    /** Stop the turn of a session that executes, or waits for a person. */
    const stopSession = async (userId: string, sessionId: string) => {
      running.stopAnywhere({ sessionId }, "user_stop");
      for (const { clientRequestId } of await waits.ofSession(sessionId))
        if (clientRequestId !== undefined) await stopTurn({ userId, sessionId, clientRequestId });
    };
    const channel = openQueryChannel(
      { ...given, ...shared, requests, runs, conversations, serverInstanceId, stopSession, stopTurn },
      scope,
    );
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
    const executor = createTurnExecutor({
      ...given,
      ...{ models, files, shownRoom, waits, argumentsFault, consents, running, limits, delegate },
      toolPolicy: settings.toolPolicy,
      hasApprovals: settings.hasApprovals,
    });
    const work = createQueryWork({
      ...given,
      ...{ files, executor, waits, conversations, records: queryRecords, subscribers: channel.subscribers },
    });
    const clearing = createClearing({
      ...{ engine, log, clock, ids, conversations, runs, hints, waits },
      interrupt: (sessionId) => running.stopAnywhere({ sessionId }, "conversation_cleared"),
    });

    for (let depth = 0; depth <= DELEGATION_DEPTH; depth++) {
      engine.define<Turn | ClearInput, void>(
        workKind(depth),
        async (context, input) => {
          if ("clear" in input) return clearing.finish(input, context.signal);
          try {
            delegations.notify(input, await work.run(context, input));
          } catch (error) {
            // Not the end of the turn: it is executed again when a person has decided, or when the process has started again.
            const goesOn = error instanceof ports.WorkParked || error instanceof ports.EngineStopped;
            if (!goesOn) delegations.notify(input, undefined);
            throw error;
          }
        },
        { onInterrupted: "resume", beginsWithBatch: true, concurrency: CONCURRENCY },
      );
    }
    if (given.notifications) defineNotifiedStates({ notifications: given.notifications, waits, limits, clock });
    engine.chore("sweep-client-requests", { everyMs: SWEEP_MS, firstMs: SWEEP_MS }, (signal) => requests.sweep(signal));
    engine.chore("tend-waiting-turns", WAITS_TENDED, createTendWaits({ waits, clock, audit: auditWriter(given.audit, records) }));
    engine.chore(
      "sweep-runs",
      RUNS_SWEEP,
      createSweepRuns({
        ...{ runs, conversations, agents, engine, clock, ...settings },
        keepRunsMs: keepingMs(settings.keepRuns),
        removed: createRemovedRuns({ records, log, runs, conversations, waits }),
        deliveries: createDeliveries(given),
      }),
    );
    const keepMemoriesMs = keepingMs(settings.keepMemories);
    if (keepMemoriesMs !== undefined) {
      const memories = createMemories(records);
      const sweep = (closing: AbortSignal) => memories.eraseBefore(new Date(clock.now() - keepMemoriesMs).toISOString(), closing);
      engine.chore("sweep-memories", RUNS_SWEEP, sweep);
    }
    scope.onReady(async () => {
      await engine.ready();
      await untilInterruptedClosed({ engine, runs, conversations });
    });
    return {
      serverInstanceId,
      isAlive,
      requests,
      runs,
      conversations,
      openTurns,
      running,
      admission,
      clearing,
      channel,
      executor,
      limits,
      files,
      stopTurn,
      waits,
      approvalChanges,
      consents,
      argumentsFault,
      checks,
    };
  },
});
