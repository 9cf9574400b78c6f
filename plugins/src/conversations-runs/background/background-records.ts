import { type ports, writeAgain } from "@portico/core";
import { firstRun } from "../runs/first-run.ts";
import { receiptStream } from "../runs/receipts.ts";
import { type Run, type Runs, withEvent } from "../runs/runs.ts";
import { endRun, toReceipt, type TurnEnd } from "../turns/turn-end.ts";
import type { AcceptedTurn } from "./background-turn.ts";

/** What background turns write: their beginning and their end, each in one commit. */
export function createBackgroundRecords(given: {
  readonly log: ports.EventLog;
  readonly runs: Runs;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}) {
  const { log, runs, clock, ids } = given;
  const begun = (turn: AcceptedTurn, at: string): Run =>
    withEvent({ ...firstRun(turn, at), background: true, inbound: turn.origin }, "turn-began", at, { turn_started_at: at });

  return {
    /** The turn begins: its run is there, running. */
    begin: (turn: AcceptedTurn): Promise<void> =>
      writeAgain(async () => {
        // It is there where the store took it, and its answer was lost.
        if (await runs.find(turn.runId)) return;
        await runs.writeAll(runs.begin(begun(turn, new Date(clock.now()).toISOString())));
      }),

    /** The turn is over: run and receipt in one commit, whether its beginning was written or not. Twice is once. */
    end: (turn: AcceptedTurn, end: TurnEnd): Promise<void> =>
      writeAgain(async () => {
        const before = await runs.find(turn.runId);
        if (before && before.value.status !== "running") return;
        const at = new Date(clock.now()).toISOString();
        const run = before?.value ?? begun(turn, at);
        const ended = endRun(run, turn, end, at);
        const entry = toReceipt(turn, end, run, { id: ids.id("rcp_"), at });
        await log.appendAll([{ stream: receiptStream(turn.runId), entry }], {
          records: before ? [runs.replace(before, ended)] : runs.begin(ended),
        });
      }),
  };
}
