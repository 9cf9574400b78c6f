import { ports, writeAgain } from "@portico/core";
import { firstRun } from "../runs/first-run.ts";
import { lastReceipt, receiptStream } from "../runs/receipts.ts";
import { type Run, type Runs, withEvent } from "../runs/runs.ts";
import { notBefore } from "../turns/not-before.ts";
import { endRun, nothing, toReceipt, type TurnEnd } from "../turns/turn-end.ts";
import { type HeldCondition, writeWhileHeld } from "../turns/while-held.ts";
import type { AcceptedTurn } from "./background-turn.ts";
import { toldEnd } from "./told-end.ts";

/** Data of a turn beside its work, until it has ended and left the queue: by the id of its run. */
export interface OpenTurn {
  /**
   * The turn itself: the engine does not show queued work, so code that finds or stops a queued turn reads it here. Earlier versions stored it
   * only if its end is reported.
   */
  readonly turn?: AcceptedTurn | undefined;
  /** Why it is to stop. */
  readonly stop?: string | undefined;
}

/** A turn that was stopped before it began. */
interface StoppedInLine {
  readonly turn: AcceptedTurn;
  /** False if an earlier call stopped it. */
  readonly isStoppedNow: boolean;
}

/** The collection of these records. */
export const openTurns: ports.CollectionSpec = { name: "background-turns" };

/** The writes of background turns: their beginning and their end, each in one commit, and the request to stop. */
export function createBackgroundRecords(given: {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly runs: Runs;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}) {
  const { log, runs, clock, ids } = given;
  const open = given.records.collection<OpenTurn>(openTurns);
  const now = () => new Date(clock.now()).toISOString();
  const begun = (turn: AcceptedTurn, at: string): Run =>
    withEvent({ ...firstRun(turn, at), background: true, inbound: turn.origin }, "turn-began", at, { turn_started_at: at });
  const read = async (runId: string) => {
    const [run, kept] = await Promise.all([runs.find(runId), open.get(runId)]);
    return { run, kept };
  };
  const writeEnd = async (
    turn: AcceptedTurn,
    end: TurnEnd,
    { run: before, kept }: Awaited<ReturnType<typeof read>>,
    condition: readonly ports.Write[] = [],
  ) => {
    const at = new Date(notBefore(clock.now(), before?.value.turn_started_at)).toISOString();
    const run = before?.value ?? begun(turn, at);
    const ended = endRun(run, turn, end, at);
    const entry = toReceipt(turn, end, run, { id: ids.id("rcp_"), at });
    await log.appendAll([{ stream: receiptStream(turn.runId), entry }], {
      records: [
        ...condition,
        ...(before ? runs.replace(before, ended) : runs.begin(ended)),
        ...(kept ? [open.write.remove(kept.id)] : []),
      ],
    });
  };

  /** Nothing is open about a turn that had ended when its key was accepted again. */
  const close = async (kept: ports.Stored<OpenTurn> | undefined): Promise<void> => {
    if (kept) await open.remove(kept.id);
  };

  return {
    /** The writes that accept a turn. */
    accept: (turn: AcceptedTurn): readonly ports.Write[] => [open.write.put(turn.runId, { turn })],

    /** The turn starts: its run exists and is running. Returns whether the turn has already ended, and the reason if a stop was requested. */
    begin: (turn: AcceptedTurn, held: HeldCondition): Promise<{ readonly isOver: boolean; readonly stop: string | undefined }> =>
      writeWhileHeld(held, async (condition) => {
        const { run, kept } = await read(turn.runId);
        // The record exists if the store accepted it and its answer was lost.
        if (!run) await runs.writeAll([...condition, ...runs.begin(begun(turn, now()))]);
        if (!isOver(run)) return { isOver: false, stop: kept?.value.stop };
        await close(kept);
        return { isOver: true, stop: undefined };
      }),

    /** The turn has ended: stores run and receipt in one commit, also if its start was not stored. Idempotent. */
    end: (turn: AcceptedTurn, end: TurnEnd, held: HeldCondition): Promise<void> =>
      writeWhileHeld(held, async (condition) => {
        const found = await read(turn.runId);
        if (isOver(found.run)) {
          await close(found.kept);
          // Either this execution wrote it and did not learn so, or another process closed the turn.
          if (condition.length > 0) await runs.writeAll(condition);
          return;
        }
        await writeEnd(turn, end, found, condition);
      }),

    /**
     * Requests a stop. A turn that has not started ends immediately and is returned: the caller removes it from the queue, and then calls
     * `forgetStopped`. A turn that executes is notified by the caller. False if the turn has ended.
     */
    stop: (runId: string, reason: string): Promise<StoppedInLine | boolean> =>
      writeAgain(async () => {
        const { run, kept } = await read(runId);
        const turn = kept?.value.turn;
        // It was stopped before, and has not left the queue.
        if (isOver(run)) return turn ? { turn, isStoppedNow: false } : false;
        if (!run && kept && turn) {
          const stopped = open.write.put(runId, { turn, stop: reason }, kept.version);
          await writeEnd(turn, interrupted(reason), { run, kept: undefined }, [stopped]);
          return { turn, isStoppedNow: true };
        }
        if (kept?.value.stop === undefined) await open.put(runId, { ...kept?.value, stop: reason }, kept?.version ?? "absent");
        return true;
      }),

    /** The turn is not in the engine's queue: it was stopped there, or its acceptance failed. Idempotent. */
    async forgetStopped(runId: string): Promise<void> {
      const { run, kept } = await read(runId);
      if (kept && (!run || isOver(run))) await open.remove(runId, kept.version).catch(orChanged);
    },

    /** Why a turn is to stop. */
    stopOf: async ({ runId }: AcceptedTurn): Promise<string | undefined> => (await open.get(runId))?.value.stop,

    /** Whether a turn that was asked to stop has stopped or will stop. Removes the request of a turn that had ended before it. */
    async isStopped(runId: string, reason: string): Promise<boolean> {
      const run = await runs.find(runId);
      if (!isOver(run)) return true;
      await open.remove(runId);
      return run?.value.interruption_reason === reason;
    },

    /** The result of an ended turn. */
    async endOf({ runId }: AcceptedTurn): Promise<ports.BackgroundTurnEnd> {
      const [run, receipt] = await Promise.all([runs.find(runId), lastReceipt(log, runId)]);
      return toldEnd(runId, run?.value, receipt);
    },
  };
}

/** The end of a turn that was stopped before its agent said anything. */
export const interrupted = (reason: string): TurnEnd => ({ ...nothing, status: "interrupted", reason });

/** Its end, or a new turn with the same key, was stored meanwhile. */
function orChanged(error: unknown): void {
  if (!(error instanceof ports.RecordConflict)) throw error;
}

function isOver(run: ports.Stored<Run> | undefined): boolean {
  return run !== undefined && run.value.status !== "running";
}
