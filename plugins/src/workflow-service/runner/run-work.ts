import { isStoreAway, ports, retryWhileStoreAway, ServiceError, type StoreRetry } from "@portico/core";
import type { Definition, GraphNode } from "../definition/definition.ts";
import { filesIn } from "../files/run-files.ts";
import type { FilesOfRun } from "../files/node-files.ts";
import { hasNoResults } from "../runs/resumable-results.ts";
import type { LiveRun, LiveRuns } from "../runs/live-runs.ts";
import { RunSecrecy } from "../secrecy/run-secrecy.ts";
import type { Hidden, SecretKeeper } from "../secrecy/secret-keeper.ts";
import {
  type FieldValues,
  readFields,
  endedRun,
  type RunEnd,
  type RunError,
  type RunRecord,
  waitsToBegin,
} from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import { isTerminal } from "../contracts/run-state.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";
import type { PendingInputs } from "../service/pending-inputs.ts";
import type { RunSlots } from "../service/run-slots.ts";
import { beginRun } from "./begin-run.ts";
import { assertSize, filledIn } from "./node-values.ts";
import { Deadline } from "./deadline.ts";
import { type EarlierNodes, readEarlierNodes } from "./earlier-nodes.ts";
import { OpenGates } from "./open-gates.ts";
import { isNodeFailed, NodeInterrupted } from "./attempt.ts";
import { playGraph, playOnFailure } from "./play-graph.ts";
import type { Frame, GraphOutcome, Running, RunnerServices } from "./running.ts";
import { openReusedResults, type DoneNode, takeOver } from "./take-over.ts";
import { notifyParent } from "./notify-parent.ts";

/** The input that the engine stores for an accepted run. The other data is in the run's record. */
export interface RunInput {
  readonly runId: string;
  readonly parameters: unknown;
  /** The secret parts of the parameters. */
  readonly hidden?: Hidden | undefined;
  /** Of a run that resumes another. */
  readonly done?: DoneNode | undefined;
  /** The trace of the caller that started it (W3C `traceparent`). */
  readonly traceparent?: string | undefined;
}

interface RunWorkGiven {
  readonly runs: RunRecords;
  readonly live: LiveRuns;
  readonly definitions: StoredDefinitions;
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly services: RunnerServices;
  readonly keeper: SecretKeeper;
  readonly slots: RunSlots;
  readonly pendingInputs: PendingInputs;
}

/** The end of a run, before it is stored. */
interface Outcome {
  readonly status: RunEnd["status"];
  readonly error?: RunError | undefined;
  /** Not masked. */
  readonly outputs?: unknown;
  /** The values of the declared outputs. */
  readonly outputFields?: FieldValues | undefined;
}

interface EndGiven {
  readonly record: RunRecord;
  readonly trace: ports.WorkTrace;
  /** The record as it was read; undefined if the run has changed it since. */
  readonly stored: ports.Stored<RunRecord> | undefined;
  readonly outcome: Outcome;
  readonly live: LiveRun;
  /** Signals whose answers are no longer needed. */
  readonly answered: readonly string[];
  readonly secrecy: RunSecrecy;
  /** Undefined if the run could not read what earlier executions had finished. Then no other run can resume it. */
  readonly earlier: EarlierNodes | undefined;
}

/** Attempts of a cancelled run to store its end. After a restart, `settleRuns` stores a missing end. */
const CANCELLED_ATTEMPTS = 10;

const UNEXPECTED: Outcome = {
  status: "failed",
  error: { code: "run_failed", message: "The run failed unexpectedly; the service's log says why" },
};

const TOO_LONG: Outcome = { status: "failed", error: { code: "timeout", message: "The run took too long" } };

const UNUSABLE: Outcome = {
  status: "interrupted",
  error: { code: "definition_unusable", message: "The definition of this run can no longer be used" },
};

/** The outcome of a run whose work was cancelled; undefined if it was not. */
function cancelledOutcome({ aborted, reason }: AbortSignal): Outcome | undefined {
  if (!aborted || !(reason instanceof ports.WorkCancelled)) return undefined;
  return { status: "cancelled", error: { code: "cancelled", message: reason.message } };
}

/** The outcome of a run that waited for further triggers, and that the limit of its workflow then refused. */
function refusedOutcome(error: unknown): Outcome | undefined {
  if (!ServiceError.is(error)) return undefined;
  return { status: "failed", error: { code: error.code, message: error.message } };
}

/** Gives a run the files that its results or its parameters name: those of the run that it resumes or belongs to. */
async function takeFiles(
  files: FilesOfRun,
  { resumes, parent }: RunRecord,
  { runs, parameters }: { readonly runs: RunRecords; readonly parameters: unknown },
): Promise<void> {
  for (let from = resumes; from;) {
    await files.beginWith(from.runId);
    const found = (await runs.find(from.runId))?.value;
    // The results are those of the run before it, and so are their files.
    from = found && hasNoResults(found) ? found.resumes : undefined;
  }
  if (parent) await files.beginWith(parent.runId, filesIn(parameters));
}

/** The work with which the engine executes runs. An error in a run is the end of the run, not a failure of the work. */
export function createRunWork(given: RunWorkGiven) {
  const { runs, live: liveRuns, definitions, engine, log, services, keeper, slots, pendingInputs } = given;
  const { clock } = services;
  const storeRetryOf = ({ signal }: ports.WorkContext): StoreRetry => ({ clock, signal, cancelledAttempts: CANCELLED_ATTEMPTS });

  // As a branch, so that the run is not parked while it reads or writes its stores.
  return (work: ports.WorkContext, input: RunInput): Promise<void> => work.branch((context) => executeRun(context, input));

  async function executeRun(context: ports.WorkContext, accepted: RunInput): Promise<void> {
    const { runId } = accepted;
    let input = accepted;
    const storeRetry = storeRetryOf(context);
    let stored = await retryWhileStoreAway(storeRetry, () => runs.find(runId));
    if (!stored) return;
    let record = stored.value;
    // The run has ended, but the process died before the engine recorded the end of the work.
    if (isTerminal(record.status)) return retryWhileStoreAway(storeRetry, () => slots.recall(record));
    const trace = services.telemetry.work({
      ...{ kind: "run", workflow: record.workflowId, run: runId },
      ...{ attempt: context.attempt, traceparent: input.traceparent },
    });
    const live = liveRuns.begin(runId, context.held);
    const secrecy = new RunSecrecy(keeper);
    live.secrecy = secrecy;
    let earlier: EarlierNodes | undefined;
    let isOver = false;
    try {
      if (waitsToBegin(record)) {
        const { cancelRun } = services;
        const beginning = { context, runs, slots, pendingInputs, clock, storeRetry, cancelRun };
        ({ record, input } = await beginRun(beginning, record, input));
        stored = undefined;
      }
      await trace.run(() => {
        const about = { runId, workflow: record.workflowId };
        services.telemetry.log.info(context.attempt === 1 ? "A workflow run began" : "A workflow run goes on", about);
        return begin();
      });
      isOver = true;
    } catch (error) {
      // If the error were only thrown, the run's record would not show that the run has ended.
      const known = cancelledOutcome(context.signal) ?? refusedOutcome(error);
      if (context.signal.aborted && (!known || isStoreAway(error))) throw error;
      if (!known) services.telemetry.log.error("A run failed unexpectedly", { runId }, error);
      const outcome = known ?? UNEXPECTED;
      await end(context, { record, trace, stored: undefined, outcome, live, answered: [], secrecy, earlier });
      isOver = true;
    } finally {
      trace.end();
      // If the run is stopped or parked before its end, its data in memory is discarded.
      await liveRuns.end(live, { isOver });
    }

    async function begin(): Promise<void> {
      const held = await retryWhileStoreAway(storeRetry, () => definitions.hold(record.workflowId, record.definition));
      try {
        const { definition } = held;
        // At its first execution, a run has no ledger entries yet.
        const isFirst =
          context.attempt === 1 && definition !== undefined && !record.resumes && !mayWait(definition, services.kinds);
        if (isFirst) live.ledger.begin();
        else await retryWhileStoreAway(storeRetry, () => live.ledger.recall());
        if (definition) await execute(definition);
        else await end(context, { record, trace, stored, outcome: UNUSABLE, live, answered: [], secrecy, earlier });
      } finally {
        held.release();
      }
    }

    async function execute(definition: Definition): Promise<void> {
      const { parameters: value, hidden } = input;
      live.ledger.add({ kind: "parameters", nodeId: "", parameters: value, ...(hidden && { hidden }) });
      const storeRetry = storeRetryOf(context);
      const about = { context, runId, definition, ledger: live.ledger, clock, storeRetry };
      const found = await readEarlierNodes({ ...about, gates: services.gates, callbacks: services.callbacks, secrecy });
      const { resumes } = record;
      const refused = resumes && (await takeOver({ ...about, resumes, done: input.done, runs, log, keeper }));
      if (refused) {
        const outcome = { status: "interrupted", error: refused } as const;
        return end(context, { record, trace, stored, outcome, live, answered: [], secrecy, earlier });
      }
      earlier = found;
      const opened = await openParameters();
      if ("status" in opened)
        return end(context, { record, trace, stored, outcome: opened, live, answered: [], secrecy, earlier });
      const { parameters } = opened;
      const files = services.filesOf(record, context.held, secrecy);
      if (files) await retryWhileStoreAway(storeRetry, () => takeFiles(files, record, { runs, parameters }));
      const endsAt = (record.begunAt ?? Date.parse(record.startedAt)) + definition.timeoutMs;
      const deadline = new Deadline(clock, endsAt, record.standstill, record.gates?.length);
      const openGates = new OpenGates(runs, record, { live, deadline, changes: services.gateChanges });
      const running: Running = {
        ...{ context, definition, record, live, secrecy, deadline, openGates, storeRetry, services, files, earlier: found },
        ...(resumes && { reused: await retryWhileStoreAway(storeRetry, () => openReusedResults(log, runId)) }),
        scope: {
          ...{ parameters, derived: secrecy.derived },
          // A node that begins after a rotation uses the new values.
          get secrets() {
            return keeper.secrets;
          },
          run: { id: runId, workflowId: record.workflowId, startedAt: record.startedAt },
        },
      };
      try {
        const outcome = await play(running);
        await end(context, {
          record,
          trace,
          stored: openGates.hasWritten ? undefined : stored,
          outcome,
          live,
          answered: openGates.answered,
          secrecy,
          earlier,
        });
        // A run may end while its gates are open.
        if (openGates.hasWritten || record.gates) services.gateChanges.notify();
      } catch (error) {
        if (context.signal.aborted) await openGates.leave().catch(() => {});
        throw error;
      } finally {
        deadline.stop();
      }
    }

    /** Returns the parameters, or the end of the run if they cannot be opened. */
    async function openParameters(): Promise<{ readonly parameters: unknown } | Outcome> {
      const { parameters: value, hidden } = input;
      if (!hidden) return { parameters: value };
      try {
        return { parameters: await retryWhileStoreAway(storeRetry, () => secrecy.open(runId, { value, hidden })) };
      } catch (error) {
        if (!isNodeFailed(error)) throw error;
        return { status: "interrupted", error: { code: error.code, message: error.message } };
      }
    }
  }

  /** Executes the run to its end. Rejects with the reason if the work is stopped or parked. */
  async function play(running: Running): Promise<Outcome> {
    const { context, definition, live, deadline } = running;
    const frame: Frame = { prefix: "", nodes: {}, signal: deadline.signal, completed: () => live.completedNodeCount++ };
    try {
      const outcome = await toOutcome(running, frame, await playGraph(running, definition.graph, frame));
      const { status, error } = outcome;
      const { onFailure: node } = definition;
      if (status !== "failed" || !error || !node) return outcome;
      return { status, error: await playOnFailure(running, { node, nodes: frame.nodes, error }) };
    } catch (thrown) {
      if (thrown instanceof NodeInterrupted) {
        const error = { code: "process_restart", message: thrown.message, nodeId: thrown.nodeId };
        return { status: "interrupted", error };
      }
      const cancelled = cancelledOutcome(context.signal);
      if (!cancelled) throw thrown;
      return cancelled;
    }
  }

  async function toOutcome(running: Running, frame: Frame, played: GraphOutcome): Promise<Outcome> {
    const { outputs } = running.definition;
    switch (played.type) {
      case "failed":
        const { code, message, nodeId = played.nodeId } = played.error;
        return { status: "failed", error: { code, message, nodeId } };
      case "aborted":
        return TOO_LONG;
      case "completed":
        try {
          const filled = outputs && (await filledIn(running, frame, outputs));
          assertSize(filled);
          return { status: "completed", outputs: filled, outputFields: fieldsOf(running, filled) };
        } catch (error) {
          if (running.context.signal.aborted) throw running.context.signal.reason;
          if (frame.signal.aborted) return TOO_LONG;
          const message = running.secrecy.mask(error instanceof Error ? error.message : "The outputs cannot be evaluated");
          return { status: "failed", error: { code: "outputs_failed", message } };
        }
    }
  }

  function fieldsOf({ definition, record, secrecy }: Running, outputs: unknown): FieldValues | undefined {
    const declared = definition.search?.outputs ?? [];
    if (declared.length === 0) return undefined;
    return readFields(declared, outputs, secrecy.show(outputs, record.parent?.sensitive));
  }

  /** Store the end, and notify waiting callers. */
  async function end(
    context: ports.WorkContext,
    { record, trace, stored, outcome, live, answered, secrecy, earlier }: EndGiven,
  ): Promise<void> {
    const { runId, parent } = record;
    const { status, error, outputs, outputFields } = outcome;
    const { completedNodeCount } = live;
    const storeRetry = storeRetryOf(context);
    // The parent is notified first, because it can open the outputs in this form but not those in the ledger. After a crash in between, it is notified
    // the same again.
    if (parent) {
      await retryWhileStoreAway(storeRetry, async () => {
        const { value: shared, hidden } = await secrecy.toStored(parent.runId, outputs, parent.sensitive);
        await notifyParent(engine, record, { status, outputs: shared, hidden, message: error?.message });
      });
    }
    if (earlier && status !== "completed") {
      earlier.recordAll();
      // The run may have ended before it reached the nodes that wait for them.
      for (const childId of earlier.children) {
        await retryWhileStoreAway(storeRetry, () => services.cancelRun(childId, `Run ${runId} has ended`));
      }
      for (const turnId of earlier.turns) {
        await retryWhileStoreAway(storeRetry, async () => services.turns?.stop(turnId, "workflow_over"));
      }
    }
    live.ledger.cancelBegun(clock.now());
    let known: ports.Stored<RunRecord> | undefined = stored;
    await retryWhileStoreAway(storeRetry, async () => {
      const read = known ?? (await runs.find(runId));
      known = undefined;
      // An earlier attempt, whose answer was lost, has stored the end.
      if (!read || isTerminal(read.value.status)) {
        live.ledger.close();
        return read && slots.recall(read.value);
      }
      const completed = Math.max(completedNodeCount, read.value.completedNodeCount);
      const ended = endedRun(read.value, {
        status,
        at: clock.now(),
        error,
        completedNodeCount: completed,
        usage: live.usage,
        isComplete: earlier !== undefined,
        outputFields,
      });
      const writes = [...runs.end(read, ended), ...answered.map((signal) => services.answers.forget(runId, signal))];
      const shown = outputs === undefined ? undefined : secrecy.show(outputs, parent?.sensitive);
      const commit = (more: readonly ports.Write[]): Promise<void> => live.ledger.end([...writes, ...more], shown);
      const { slot, debounce } = read.value;
      const left = debounce ? await pendingInputs.leave(read.value) : [];
      await (slot ? slots.leave(read.value, (freed) => commit([...left, ...freed])) : commit(left));
      const { startedAt, completedAt } = ended;
      const durationMs = startedAt && completedAt ? Date.parse(completedAt) - Date.parse(startedAt) : undefined;
      services.usage?.ended({ kind: "run", name: record.workflowId, outcome: status, durationMs });
    });
    const code = status === "completed" ? undefined : (error?.code ?? status);
    trace.end({ error: code });
    const failed = error && { code: error.code, nodeId: error.nodeId };
    const about = { runId, workflow: record.workflowId, outcome: status, ...failed };
    services.telemetry.log[status === "failed" ? "warn" : "info"]("A workflow run ended", about);
  }
}

const waitsKnown = new WeakMap<Definition, boolean>();

/**
 * Whether runs of a definition can wait so long that the engine parks them. A parked run is executed again from the beginning. Finished steps
 * return their stored results, and its attempt is still the first.
 */
function mayWait(definition: Definition, kinds: RunnerServices["kinds"]): boolean {
  const answer =
    waitsKnown.get(definition) ??
    hasWaits([...definition.graph.nodes.values(), ...(definition.onFailure ? [definition.onFailure] : [])], kinds);
  waitsKnown.set(definition, answer);
  return answer;
}

function hasWaits(nodes: readonly GraphNode[], kinds: RunnerServices["kinds"]): boolean {
  return nodes.some(
    ({ rules, retry, with: values }) =>
      kinds.get(rules.type)?.waits ||
      retry.attempts > 1 ||
      Object.values(values).some((value) => value.kind === "graph" && hasWaits([...value.graph.nodes.values()], kinds)),
  );
}
