import { ports } from "@portico/core";
import type { Definition } from "../definition/definition.ts";
import type { LiveRun, LiveRuns } from "../runs/live-runs.ts";
import { endedRun, type RunEnd, type RunError, type RunRecord, type RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../runs/run-state.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";
import { Deadline } from "./deadline.ts";
import { GateBoard } from "./gate-board.ts";
import { insist } from "./insist.ts";
import { createMask } from "./mask.ts";
import { mayWait } from "./may-wait.ts";
import { assertSize } from "./play-attempts.ts";
import { playGraph } from "./play-graph.ts";
import { type Frame, type GraphOutcome, NodeInterrupted, type Running, scopeOf, type World } from "./running.ts";
import { tellParent } from "./tell-parent.ts";

/** What the engine keeps of an accepted run; all else stands in its record. */
export interface RunInput {
  readonly runId: string;
  readonly parameters: unknown;
}

export interface RunWorkGiven {
  readonly runs: RunRecords;
  readonly live: LiveRuns;
  readonly definitions: StoredDefinitions;
  readonly engine: ports.Engine;
  readonly world: World;
  readonly secrets: Readonly<Record<string, string>>;
}

/** How a run ended, before it is written down. */
interface Outcome {
  readonly status: RunEnd["status"];
  readonly error?: RunError | undefined;
  /** Not masked. */
  readonly outputs?: unknown;
}

interface EndGiven {
  readonly record: RunRecord;
  /** The record as it still is; undefined where something of the run has written it since. */
  readonly stored: ports.Stored<RunRecord> | undefined;
  readonly outcome: Outcome;
  readonly live: LiveRun;
  /** Gates whose decisions nobody asks for any more. */
  readonly decided: readonly string[];
}

const UNEXPECTED: Outcome = {
  status: "failed",
  error: { code: "run_failed", message: "The run failed unexpectedly; the service's log says why" },
};

const UNUSABLE: Outcome = {
  status: "interrupted",
  error: { code: "definition_unusable", message: "The definition that the run started with cannot be used here any more" },
};

/** What the engine is told of runs. What goes wrong in a run is its end, and no failure of the work. */
export function createRunWork(given: RunWorkGiven) {
  const { runs, live: liveRuns, definitions, engine, world, secrets } = given;
  const { clock } = world;
  const mask = createMask(Object.values(secrets));

  return async (context: ports.WorkContext, { runId, parameters }: RunInput): Promise<void> => {
    const stored = await insist({ context, world }, () => runs.find(runId));
    // Ended, and told, and the process died before the engine knew.
    if (!stored || isTerminal(stored.value.status)) return;
    const record = stored.value;
    const live = liveRuns.enter(runId);
    let isOver = false;
    try {
      live.completedNodeCount = 0;
      const held = await insist({ context, world }, () => definitions.hold(record.workflowId, record.definition));
      try {
        const { definition } = held;
        // A run that is executed for the first time has told nothing yet.
        const isFirst = context.attempt === 1 && definition !== undefined && !mayWait(definition);
        if (isFirst) live.ledger.begin();
        else await insist({ context, world }, () => live.ledger.recall());
        if (definition) await execute(definition);
        else await end(context, { record, stored, outcome: UNUSABLE, live, decided: [] });
      } finally {
        held.release();
      }
      isOver = true;
    } catch (error) {
      // Otherwise the engine would know of its end, and nobody else.
      if (context.signal.aborted) throw error;
      world.log.error("A run failed as nobody expected", { runId }, error);
      await end(context, { record, stored: undefined, outcome: UNEXPECTED, live, decided: [] });
      isOver = true;
    } finally {
      // Stopped or parked half-way: what is held goes with the process, or with the memory that is given back. Where it cannot be written
      // it comes again when the run is resumed.
      if (!isOver) await live.ledger.write().catch(() => {});
      liveRuns.leave(live);
    }

    async function execute(definition: Definition): Promise<void> {
      const endsAt = Date.parse(record.startedAt) + definition.timeoutMs;
      const deadline = new Deadline(clock, endsAt, record.standstill, record.gates?.length);
      const board = new GateBoard(runs, record, deadline);
      const running: Running = {
        ...{ context, definition, record, live, mask, deadline, board, world },
        scope: { parameters, secrets, run: { id: runId, workflowId: record.workflowId, startedAt: record.startedAt } },
      };
      try {
        const outcome = await play(running);
        await end(context, { record, stored: board.hasWritten ? undefined : stored, outcome, live, decided: board.decided });
      } finally {
        deadline.stop();
      }
    }
  };

  /** From the first node to what the run comes to. Rejects with the reason for which the work is stopped or parked. */
  async function play(running: Running): Promise<Outcome> {
    const { context, definition, live, deadline } = running;
    const frame: Frame = { prefix: "", nodes: {}, signal: deadline.signal, completed: () => live.completedNodeCount++ };
    try {
      return toOutcome(running, frame, await playGraph(running, definition.graph, frame));
    } catch (thrown) {
      if (thrown instanceof NodeInterrupted) {
        const error = { code: "process_restart", message: thrown.message, nodeId: thrown.nodeId };
        return { status: "interrupted", error };
      }
      const { signal } = context;
      if (!(signal.aborted && signal.reason instanceof ports.WorkCancelled)) throw thrown;
      return { status: "cancelled", error: { code: "cancelled", message: signal.reason.message } };
    }
  }

  function toOutcome(running: Running, frame: Frame, played: GraphOutcome): Outcome {
    const { outputs } = running.definition;
    switch (played.type) {
      case "failed":
        return { status: "failed", error: { ...played.error, nodeId: played.nodeId } };
      case "aborted":
        return { status: "failed", error: { code: "timeout", message: "The run took too long" } };
      case "completed":
        try {
          const filled = outputs?.fill(scopeOf(running, frame));
          assertSize(filled);
          return { status: "completed", outputs: filled };
        } catch (error) {
          const message = mask(error instanceof Error ? error.message : "The outputs cannot be evaluated");
          return { status: "failed", error: { code: "outputs_failed", message } };
        }
    }
  }

  /** Write the end down, and tell it to whoever waits for it. */
  async function end(context: ports.WorkContext, { record, stored, outcome, live, decided }: EndGiven): Promise<void> {
    const { runId } = record;
    const { status, error, outputs } = outcome;
    const { completedNodeCount } = live;
    // First: a secret that is masked in what is kept is none in what is told. After a crash in between it is told again, and the same.
    await insist({ context, world }, () => tellParent(engine, record, { status, outputs, message: error?.message }));
    let known: ports.Stored<RunRecord> | undefined = stored;
    await insist({ context, world }, async () => {
      const read = known ?? (await runs.find(runId));
      known = undefined;
      // Written before, by a try whose answer was lost.
      if (!read || isTerminal(read.value.status)) return live.ledger.close();
      const ended = endedRun(read.value, { status, at: clock.now(), error, completedNodeCount });
      const writes = [...runs.end(read, ended), ...decided.map((nodeId) => world.gates.forget(runId, nodeId))];
      await live.ledger.end(writes, outputs === undefined ? undefined : mask(outputs));
    });
  }
}
