import { type ports, readPages, writeAgain } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { Approval } from "../approvals/approval.ts";
import { type TurnWait, type TurnWaits, withApprovals, withoutApprovals } from "../approvals/turn-waits.ts";
import type { LogLine, Pausing } from "../execution/pause-turn.ts";
import { firstRun } from "../turns/first-run.ts";
import { lastReceipt, receiptStream, toldEnd } from "../runs/receipts.ts";
import { isPlanned, type Run, type Runs, withEvent } from "../runs/runs.ts";
import { endedTurn, endRun, notBefore, nothing, runFailure, toReceipt, type TurnEnd, withSpent } from "../turns/turn-end.ts";
import { TurnStopped } from "../turns/turn-failed.ts";
import { type OwnershipCondition, writeWhileOwned } from "../turns/while-owned.ts";
import { type AcceptedTurn, attemptOf, type Retry } from "./background-turn.ts";
import { failedTurnWrites } from "./failed-turns.ts";
import { openSaidToTurns } from "./said-to-turns.ts";

/** Data of a turn beside its work, until it has ended and left the queue: by the id of its run. */
export interface OpenBackgroundTurn {
  /** The turn itself: the engine does not show queued work, so code that finds or stops a queued turn reads it here. */
  readonly turn: AcceptedTurn;
  /** Why it is to stop. */
  readonly stop?: string | undefined;
  /** The attempt that executes, waits or is planned, if it is not the first. */
  readonly attempt?: number | undefined;
  /** The number of its last wait for a person. */
  readonly part?: number | undefined;
}

/** What is stored of a turn. */
interface Found {
  readonly run: ports.Stored<Run> | undefined;
  readonly record: ports.Stored<OpenBackgroundTurn> | undefined;
}

/** A turn that was stopped before it began. */
interface StoppedInLine {
  readonly turn: AcceptedTurn;
  /** False if an earlier call stopped it. */
  readonly isStoppedNow: boolean;
}

/** The collection of these records. */
export const openBackgroundTurns: ports.CollectionSpec = { name: "background-turns" };

/** The writes of background turns: their beginning and their end, each in one commit, and the request to stop. */
export function createBackgroundRecords(given: {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly runs: Runs;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly waits: TurnWaits;
  readonly usage?: ports.Usage | undefined;
  readonly notifications?: ports.Notifications | undefined;
}) {
  const { log, runs, clock, ids, waits, usage } = given;
  const open = given.records.collection<OpenBackgroundTurn>(openBackgroundTurns);
  const said = openSaidToTurns(given.records);
  const now = () => new Date(clock.now()).toISOString();
  const begun = (turn: AcceptedTurn, at: string): Run =>
    withEvent(
      {
        ...firstRun(turn, at),
        background: true,
        inbound: turn.origin,
        ...(turn.againOf !== undefined && { again_of: turn.againOf }),
      },
      "turn-began",
      at,
      { turn_started_at: at },
    );
  /** A run whose planned attempt begins. */
  const begunAgain = (turn: AcceptedTurn, run: Run, at: string): Run =>
    withEvent(run, "turn-began", at, { turn_started_at: at, attempts: attemptOf(turn) });
  const read = async (runId: string): Promise<Found> => {
    const [run, record] = await Promise.all([runs.find(runId), open.get(runId)]);
    return { run, record };
  };
  const writeEnd = async (
    turn: AcceptedTurn,
    end: TurnEnd,
    { run: before, record }: Found,
    condition: readonly ports.Write[] = [],
  ) => {
    const endedAt = notBefore(clock.now(), before?.value.turn_started_at);
    const at = new Date(endedAt).toISOString();
    const run = !before ? begun(turn, at) : isPlanned(before.value) ? begunAgain(turn, before.value, at) : before.value;
    // Its process died before it could go on.
    const wait = record?.value.part === undefined ? undefined : await waits.find(turn.turnId);
    const left = wait && (await waits.end(wait, endedAt));
    const ended = endRun(run, turn, end, at);
    const entry = toReceipt(turn, end, run, { id: ids.id("rcp_"), at });
    await log.appendAll([{ stream: receiptStream(turn.runId), entry }], {
      records: [
        ...condition,
        ...(before ? runs.replace(before, ended) : runs.begin(ended)),
        ...(record ? [open.write.remove(record.id)] : []),
        ...(left?.writes ?? []),
        ...(turn.isAsked ? [said.write.remove(turn.runId)] : []),
        ...(end.status === "failed" ? failedTurnWrites(given, turn, end) : []),
      ],
    });
    usage?.ended(endedTurn(turn, end, run, endedAt));
  };

  /** Nothing is open about a turn that had ended when its key was accepted again. */
  const close = async (turn: AcceptedTurn, record: ports.Stored<OpenBackgroundTurn> | undefined): Promise<void> => {
    if (record && attemptOf(record.value) === attemptOf(turn)) await open.remove(record.id);
  };

  return {
    /** The writes that accept a turn. */
    accept: (turn: AcceptedTurn): readonly ports.Write[] => [open.write.put(turn.runId, { turn })],

    /** The turn starts: its run exists and is running. Returns whether the turn has already ended, and the reason if a stop was requested. */
    begin: (
      turn: AcceptedTurn,
      ownership: OwnershipCondition,
    ): Promise<{ readonly isOver: boolean; readonly stop: string | undefined }> =>
      writeWhileOwned(ownership, async (condition) => {
        const { run, record } = await read(turn.runId);
        if (isOver(turn, { run, record })) {
          await close(turn, record);
          return { isOver: true, stop: undefined };
        }
        // The record exists if the store accepted it and its answer was lost.
        if (!run) await runs.writeAll([...condition, ...runs.begin(begun(turn, now()))]);
        if (run && isPlanned(run.value))
          await runs.writeAll([...condition, ...runs.replace(run, begunAgain(turn, run.value, now()))]);
        return { isOver: false, stop: record?.value.stop };
      }),

    /**
     * The turn begins to wait for a person: what it asks and keeps is durable, with the last entry of its transcript. Throws TurnStopped if the
     * turn is to stop.
     */
    wait: (
      turn: AcceptedTurn,
      pausing: Pausing,
      transcript: LogLine,
      ownership: OwnershipCondition,
    ): Promise<number | undefined> =>
      writeWhileOwned(ownership, async (condition) => {
        const { run, record } = await read(turn.runId);
        // The store took an earlier attempt, and its answer was lost.
        if (record?.value.part === pausing.number) return undefined;
        if (record?.value.stop !== undefined) throw new TurnStopped(record.value.stop);
        const { part: _part, attempt, ...accepted } = turn;
        const [sequence] = await log.appendAll([transcript, ...pausing.entries], {
          records: [
            ...condition,
            open.write.put(turn.runId, { turn: accepted, attempt, part: pausing.number }, record?.version ?? "absent"),
            ...(run ? runs.replace(run, withApprovals(run.value, pausing.approvals, now())) : []),
            ...pausing.writes,
          ],
        });
        return sequence;
      }),

    /** The turn goes on after a wait. Returns the ended approvals, and why it is to stop. */
    goOn: (
      turn: AcceptedTurn,
      wait: TurnWait,
      ownership: OwnershipCondition,
    ): Promise<{ readonly approvals: readonly Approval[]; readonly stop: string | undefined }> =>
      writeWhileOwned(ownership, async (condition) => {
        const [{ run, record }, ended] = await Promise.all([read(turn.runId), waits.end(wait, clock.now())]);
        await runs.writeAll([
          ...condition,
          ...(run ? runs.replace(run, { ...withoutApprovals(run.value), updatedAt: now() }) : []),
          ...ended.writes,
        ]);
        return { approvals: ended.approvals, stop: record?.value.stop };
      }),

    /** Whether a turn has begun to wait after this part of it, and goes on in other work or went on. */
    isPast: async ({ runId, part }: AcceptedTurn): Promise<boolean> => {
      const last = (await open.get(runId))?.value.part;
      return last !== undefined && last !== part;
    },

    /** The record of a turn that is accepted, and has not ended. */
    openTurn: async (runId: string): Promise<OpenBackgroundTurn | undefined> => (await open.get(runId))?.value,

    /** The turn has ended: stores run and receipt in one commit, also if its start was not stored. Idempotent. */
    end: (turn: AcceptedTurn, end: TurnEnd, ownership: OwnershipCondition): Promise<void> =>
      writeWhileOwned(ownership, async (condition) => {
        const found = await read(turn.runId);
        if (isOver(turn, found)) {
          await close(turn, found.record);
          // Either this execution wrote it and did not learn so, or another process closed the turn.
          if (condition.length > 0) await runs.writeAll(condition);
          return;
        }
        await writeEnd(turn, end, found, condition);
      }),

    /** An attempt of the turn has failed, and another one is planned: stores the run, its receipt and the plan in one commit. Idempotent. */
    putOff: (turn: AcceptedTurn, end: TurnEnd, { attempt, delayMs }: Retry, ownership: OwnershipCondition): Promise<void> =>
      writeWhileOwned(ownership, async (condition) => {
        const found = await read(turn.runId);
        const { run, record } = found;
        if (isOver(turn, found)) {
          if (condition.length > 0) await runs.writeAll(condition);
          return;
        }
        const stop = record?.value.stop;
        if (!run || stop !== undefined)
          return writeEnd(turn, stop === undefined ? end : { ...end, status: "interrupted", reason: stop }, found, condition);
        const endedAt = notBefore(clock.now(), run.value.turn_started_at);
        const at = new Date(endedAt).toISOString();
        const { attempt: _attempt, ...accepted } = turn;
        const entry = toReceipt(turn, end, run.value, { id: ids.id("rcp_"), at });
        const waiting = withEvent(withSpent(run.value, end, at), "turn-put-off", at, {
          attempts: attempt - 1,
          retry_at: new Date(endedAt + delayMs).toISOString(),
          turn_ended_at: at,
          ...runFailure(end),
        });
        await log.appendAll([{ stream: receiptStream(turn.runId), entry }], {
          records: [
            ...condition,
            ...runs.replace(run, waiting),
            open.write.put(turn.runId, { turn: accepted, attempt }, record?.version ?? "absent"),
          ],
        });
      }),

    /** The turn of a planned attempt. `not yet`: the end of the attempt before it is not stored. `over`: it will not begin. */
    async plannedTurn(runId: string, attempt: number): Promise<AcceptedTurn | "not yet" | "over"> {
      const { run, record } = await read(runId);
      if (!record || attemptOf(record.value) > attempt) return "over";
      if (attemptOf(record.value) < attempt) return "not yet";
      return run && isPlanned(run.value) ? { ...record.value.turn, attempt } : "over";
    },

    /** Whether another attempt of a turn is planned. */
    async isPlanned(runId: string): Promise<boolean> {
      const run = await runs.find(runId);
      return run !== undefined && isPlanned(run.value);
    },

    /** A turn, by its run. Undefined for a turn that is unknown. */
    async found(runId: string): Promise<ports.FoundTurn | undefined> {
      const { run, record } = await read(runId);
      if (!run && !record) return undefined;
      return run && hasEnded(run) ? { runId, isOpen: false, end: endOfRun(run.value) } : { runId, isOpen: true };
    },

    /** Whether a turn waits for a person or for its next attempt, so that the engine may have forgotten its first work. */
    async isLater(runId: string): Promise<boolean> {
      const { run, record } = await read(runId);
      return record?.value.part !== undefined || (record !== undefined && run !== undefined && isPlanned(run.value));
    },

    /**
     * Requests a stop. A turn that has not started ends immediately and is returned: the caller removes it from the queue, and then calls
     * `forgetStopped`. A turn that executes is notified by the caller. False if the turn has ended.
     */
    stop: (runId: string, reason: string): Promise<StoppedInLine | boolean> =>
      writeAgain(async () => {
        const { run, record } = await read(runId);
        if (!record) return false;
        // It was stopped before, and has not left the queue.
        if (hasEnded(run)) return { turn: attempted(record), isStoppedNow: false };
        if (!run || isPlanned(run.value)) {
          const stopped = open.write.put(runId, { ...record.value, stop: reason }, record.version);
          await writeEnd(attempted(record), interrupted(reason), { run, record: undefined }, [stopped]);
          return { turn: attempted(record), isStoppedNow: true };
        }
        const { turn, stop, part } = record.value;
        if (stop === undefined) {
          const stopped = open.write.put(runId, { ...record.value, stop: reason }, record.version);
          await runs.writeAll([stopped, ...(part === undefined ? [] : await waits.stop(turn.turnId, clock.now()))]);
        }
        return true;
      }),

    /** The turn is not in the engine's queue: it was stopped there, or its acceptance failed. Idempotent. */
    async forgetStopped(runId: string): Promise<void> {
      const { run, record } = await read(runId);
      // A conflict: its end, or a new turn with the same key, was stored meanwhile.
      if (record && (!run || hasEnded(run))) await open.remove(runId, record.version).catch(undefinedAtConflict);
    },

    /** Why a turn is to stop. */
    stopOf: async ({ runId }: AcceptedTurn): Promise<string | undefined> => (await open.get(runId))?.value.stop,

    /** Whether a turn that was asked to stop has stopped or will stop. */
    async isStopped(runId: string, reason: string): Promise<boolean> {
      const run = await runs.find(runId);
      return !hasEnded(run) || run?.value.interruption_reason === reason;
    },

    /** The result of an ended turn. */
    async endOf({ runId }: AcceptedTurn): Promise<ports.BackgroundTurnEnd> {
      const [run, receipt] = await Promise.all([runs.find(runId), lastReceipt(log, runId)]);
      return toldEnd(runId, run?.value, receipt);
    },
  };
}

/** The end of a turn that was stopped before its agent said anything. */
const interrupted = (reason: string): TurnEnd => ({ ...nothing, status: "interrupted", reason });

/** Whether this attempt of a turn has ended, or may not begin. */
function isOver(turn: AcceptedTurn, { run, record }: Found): boolean {
  // Only the first attempt begins a run. The run of a later one was removed with its user, while a process began the attempt.
  if (!run && attemptOf(turn) > 1) return true;
  return hasEnded(run) || (record !== undefined && attemptOf(record.value) !== attemptOf(turn));
}

function hasEnded(run: ports.Stored<Run> | undefined): boolean {
  return run !== undefined && run.value.status !== "running" && !isPlanned(run.value);
}

function endOfRun(run: Run): NonNullable<ports.FoundTurn["end"]> {
  const { status, interruption_reason: reason, interrupted_at, completed_at, updatedAt, started_at } = run;
  const at = Date.parse(interrupted_at ?? completed_at ?? updatedAt ?? started_at);
  if (status === "failed") return { status, at };
  return reason === undefined ? { status: "completed", at } : { status: "interrupted", reason, at };
}

const attempted = ({ value: { turn, attempt } }: ports.Stored<OpenBackgroundTurn>): AcceptedTurn => ({ ...turn, attempt });

/** Background turns that wait or execute, and those that were stopped and have not left the queue yet. */
export function createOpenBackgroundTurns(records: ports.Records) {
  const open = records.collection<OpenBackgroundTurn>(openBackgroundTurns);
  return {
    /** A user's turns. Reads the records of all users. */
    async *ofUser(userId: string): AsyncGenerator<AcceptedTurn, void> {
      for await (const page of readPages(open, {})) {
        for (const { value } of page) if (value.turn.userId === userId) yield value.turn;
      }
    },
  };
}
