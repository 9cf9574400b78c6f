import { ports, readPages } from "@portico/core";
import { workflowErrors } from "../contracts/errors.ts";
import { QUEUED_RUNS } from "../contracts/limits.ts";
import { isTerminal } from "../contracts/run-state.ts";
import type { Concurrency } from "../definition/definition.ts";
import { createTurns } from "./keyed-turns.ts";
import { isQueued, type RunRecord, type RunSlot } from "../runs/run-record.ts";

/** The signal for which a run waits before its first node. */
export const TURN = "turn";

/** The payload of this signal. */
export interface Turn {
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The runs of one workflow and key. A run is in it from its acceptance to its end. */
interface SlotList {
  readonly workflowId: string;
  /** As the last start says. */
  readonly limit: number;
  /** The oldest first. `calledAt`: set for a run that had to wait, in milliseconds since 1970. */
  readonly running: readonly { readonly runId: string; readonly calledAt?: number }[];
  /** In the order of their starts. */
  readonly waiting: readonly string[];
  /** Runs that newer runs replace, and that have not ended yet. */
  readonly replaced?: readonly { readonly runId: string; readonly by: string }[];
}

/** A planned time of a schedule that started nothing. */
interface RefusedTime {
  /** ISO 8601. */
  readonly plannedAt: string;
  /** The code of the error. */
  readonly code: string;
}

/** The limit under which a run starts. */
export interface SlotOrder {
  /** The list of the workflow and key. */
  readonly listId: string;
  readonly limit: number;
  readonly overflow: Concurrency["overflow"];
}

/** The run that starts. */
interface Entering extends SlotOrder {
  readonly runId: string;
  readonly workflowId: string;
}

/** What the commit that accepts a run contains. */
export interface TakenSlot {
  readonly slot: RunSlot;
  readonly write: ports.Write;
}

export type RunSlots = ReturnType<typeof createRunSlots>;

/** Attempts of a write to one list while other processes write to it. Within a process, one write follows another. */
const ATTEMPTS = 50;
const COLLECTION = "workflow-slots";

/**
 * The runs of workflows with `concurrency`: how many go on, and which of them wait. One record lists the runs of a workflow and key. It is
 * written in the commit that accepts a run, and in the commit that ends it. Functions throw RecordsUnavailable.
 */
export function createRunSlots({
  records,
  engine,
  clock,
  log,
  find,
}: {
  readonly records: ports.Records;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly log: Pick<ports.Log, "warn">;
  find(runId: string): Promise<RunRecord | undefined>;
}) {
  const lists = records.collection<SlotList>({ name: COLLECTION });
  const refused = records.collection<RefusedTime>({ name: "workflow-refused-times" });
  const inTurn = createTurns();

  return {
    /**
     * Accepts a run with `commit`, which is called again if another process wrote in between. Returns the runs that the new run replaces: the
     * caller cancels them. Throws `workflow_busy`, `workflow_queue_full`, and what `commit` throws.
     */
    async enter(order: Entering, commit: (taken: TakenSlot) => Promise<void>): Promise<readonly string[]> {
      const { listId } = order;
      const { before, next } = await change(listId, async (found) => {
        const entered = withEntered(found?.value, order);
        const waits = entered.waiting.includes(order.runId);
        await commit({ slot: { listId, ...(waits && { waits }) }, write: writeOf(listId, entered, found?.version) });
        return { before: found?.value, next: entered };
      });
      await call(calledSince(before, next)).catch(leftToRepair);
      return next.replaced?.filter(({ by }) => by === order.runId).map(({ runId }) => runId) ?? [];
    },
    /** Ends a run with `commit`, and begins the next ones. `commit` is called again if another process wrote in between. */
    async leave({ runId, slot }: RunRecord, commit: (writes: readonly ports.Write[]) => Promise<void>): Promise<void> {
      if (!slot) return commit([]);
      const { listId } = slot;
      const called = await change(listId, async (found) => {
        const left = found && without(found.value, new Set([runId]), found.value.limit);
        await commit(left ? [writeOf(listId, left, found.version)] : []);
        return left ? calledSince(found.value, left) : [];
      });
      await call(called).catch(leftToRepair);
    },
    /** Notes the newest planned time of a schedule that started nothing, because the start was refused. */
    async noteRefused(scheduleId: string, time: RefusedTime): Promise<void> {
      await refused.put(scheduleId, time);
      log.warn("A planned time was refused", { schedule: scheduleId, plannedAt: time.plannedAt, code: time.code });
    },
    lastRefused: async (scheduleId: string): Promise<RefusedTime | undefined> => (await refused.get(scheduleId))?.value,
    /** Sends the signals of a run's list again: the process that ended the run may have died before it sent them. */
    async recall({ slot }: RunRecord): Promise<void> {
      const found = slot && (await lists.get(slot.listId));
      if (found) await callQueued(found.value);
    },
    /**
     * Completes what dead processes left: sends lost signals again, cancels replaced runs again, frees the slots of runs that have ended, and
     * applies limits of definitions that were deployed meanwhile. Throws what stores throw.
     */
    async repair(given: Repairing, closing: AbortSignal): Promise<void> {
      for await (const page of readPages(lists, {})) {
        for (const { id } of page) {
          if (closing.aborted) return;
          const list = await repaired(id, given);
          if (!list) continue;
          await callQueued(list);
          for (const { runId, by } of list.replaced ?? []) await given.cancel(runId, by);
        }
      }
    },
  };

  function repaired(listId: string, { limitOf }: Repairing): Promise<SlotList | undefined> {
    return change(listId, async (found) => {
      if (!found) return undefined;
      const { value, version } = found;
      const read = await Promise.all(value.running.map(async ({ runId }) => ({ runId, run: await find(runId) })));
      const ended = new Set(read.flatMap(({ runId, run }) => (!run || isTerminal(run.status) ? [runId] : [])));
      const next = without(value, ended, limitOf(value.workflowId) ?? value.limit);
      if (ended.size > 0 || next.running.length > value.running.length) await records.batch([writeOf(listId, next, version)]);
      return next;
    });
  }

  async function callQueued({ running }: SlotList): Promise<void> {
    const called = running.filter(({ calledAt }) => calledAt !== undefined);
    const isUnheard = await Promise.all(
      called.map(async ({ runId }) => {
        const run = await find(runId);
        return run !== undefined && isQueued(run);
      }),
    );
    await call(called.filter((_each, at) => isUnheard[at]));
  }

  /** Tells runs that had to wait that they begin. A run that has begun ignores it. Throws EngineUnavailable. */
  async function call(called: SlotList["running"]): Promise<void> {
    for (const { runId, calledAt = clock.now() } of called) await engine.signal(runId, TURN, { at: calledAt } satisfies Turn);
  }

  /** Calls `attempt` with a list. `attempt` writes the list, and is called again if another process wrote in between. */
  function change<T>(listId: string, attempt: (found: ports.Stored<SlotList> | undefined) => Promise<T>): Promise<T> {
    return inTurn(listId, () => changeNow(listId, attempt));
  }

  async function changeNow<T>(listId: string, attempt: (found: ports.Stored<SlotList> | undefined) => Promise<T>): Promise<T> {
    for (let count = 1; ; count++) {
      try {
        return await attempt(await lists.get(listId));
      } catch (error) {
        // Other conflicts are those of the run.
        if (!(error instanceof ports.RecordConflict && error.collection === COLLECTION && error.id === listId)) throw error;
        // To callers, a conflict means that the run was accepted before.
        if (count >= ATTEMPTS)
          throw new ports.RecordsUnavailable("Other processes changed a list of runs too often", { cause: error });
      }
    }
  }

  function writeOf(listId: string, next: SlotList, version: number | undefined): ports.Write {
    const isEmpty = next.running.length === 0 && next.waiting.length === 0;
    if (isEmpty && version !== undefined) return lists.write.remove(listId, version);
    return lists.write.put(listId, next, version ?? "absent");
  }

  function withEntered(found: SlotList | undefined, { runId, workflowId, limit, overflow }: Entering): SlotList {
    const before = found ?? { workflowId, limit, running: [], waiting: [] };
    const next = admitted({ ...before, limit, waiting: [...before.waiting, runId] });
    if (!next.waiting.includes(runId)) {
      // It begins with its acceptance, and waits for no signal.
      return { ...next, running: next.running.map((each) => (each.runId === runId ? { runId } : each)) };
    }
    if (overflow === "refuse") throw workflowErrors.workflow_busy();
    if (next.waiting.length > QUEUED_RUNS) throw workflowErrors.workflow_queue_full();
    return overflow === "replace" ? withReplaced(next, runId) : next;
  }

  /** Begins the runs that have waited longest, up to the limit. */
  function admitted(list: SlotList): SlotList {
    const free = Math.max(0, list.limit - list.running.length);
    const replaced = new Set(list.replaced?.map(({ runId }) => runId));
    const begun = new Set(list.waiting.filter((runId) => !replaced.has(runId)).slice(0, free));
    const calledAt = clock.now();
    return {
      ...list,
      running: [...list.running, ...[...begun].map((runId) => ({ runId, calledAt }))],
      waiting: list.waiting.filter((runId) => !begun.has(runId)),
    };
  }

  function without(list: SlotList, ended: ReadonlySet<string>, limit: number): SlotList {
    const { replaced, ...rest } = list;
    const stillReplaced = replaced?.filter(({ runId }) => !ended.has(runId)) ?? [];
    return admitted({
      ...{ ...rest, limit },
      running: list.running.filter(({ runId }) => !ended.has(runId)),
      waiting: list.waiting.filter((runId) => !ended.has(runId)),
      ...(stillReplaced.length > 0 && { replaced: stillReplaced }),
    });
  }
}

/** What a repair needs of the service. */
interface Repairing {
  cancel(runId: string, by: string): Promise<void>;
  /** The limit of the deployed definition. Undefined without such a workflow. */
  limitOf(workflowId: string): number | undefined;
}

/** The reason of a cancellation. */
export function replacedBy(runId: string): string {
  return `Run ${runId} replaced it, because of the workflow's concurrency`;
}

function calledSince(before: SlotList | undefined, { running }: SlotList): SlotList["running"] {
  const known = new Set(before?.running.map(({ runId }) => runId));
  return running.filter(({ runId, calledAt }) => calledAt !== undefined && !known.has(runId));
}

/** All runs but the newest ones that the limit allows are replaced. */
function withReplaced(list: SlotList, by: string): SlotList {
  const all = [...list.running.map(({ runId }) => runId), ...list.waiting];
  const known = new Map(list.replaced?.map((each) => [each.runId, each]));
  const replaced = all.slice(0, Math.max(0, all.length - list.limit)).map((runId) => known.get(runId) ?? { runId, by });
  return { ...list, replaced };
}

/** The commit is durable. The chore sends the signals that could not be sent now. */
function leftToRepair(error: unknown): void {
  if (!(error instanceof ports.EngineUnavailable || error instanceof ports.EngineFenced)) throw error;
}
