import { type ports, retryWhileStoreAway } from "@portico/core";
import type { TurnWait, TurnWaits } from "../approvals/turn-waits.ts";
import type { Execution, TurnExecutor } from "../execution/execute-turn.ts";
import { endWork, type OwnershipCondition } from "../turns/while-owned.ts";
import { transcriptStream } from "../turns/turn.ts";
import type { TurnEnd } from "../turns/turn-end.ts";
import type { createBackgroundRecords } from "./background-records.ts";
import type { AcceptedTurn } from "./background-turn.ts";
import type { Deliveries } from "./deliveries.ts";
import type { PlannedRetries } from "./planned-retries.ts";

export interface BackgroundWorkGiven {
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly executor: TurnExecutor;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  readonly waits: TurnWaits;
  readonly retries: PlannedRetries;
  readonly deliveries: Deliveries;
  /** How long a turn may take. */
  readonly timeoutMs: number;
}

/**
 * The definition of background turns for the engine: how a turn is executed, and how it is closed if its process died during the execution.
 */
export function createBackgroundWork(given: BackgroundWorkGiven) {
  const { log, engine, clock, executor, records, retries, waits, deliveries, timeoutMs, telemetry } = given;

  /** Executes one turn, from its beginning or from a wait. An error in the turn ends the turn. It is not a failure of the work. */
  const run = async (context: ports.WorkContext, turn: AcceptedTurn): Promise<void> => {
    const { signal } = context;
    const ownership = engine.isShared ? context.held : undefined;
    const wait =
      turn.part === undefined ? undefined : await retryWhileStoreAway({ clock, signal }, () => waits.find(turn.turnId));
    // It went on before, in work that the engine does not remember.
    if (wait?.number !== turn.part) return;
    const end = await executor.run(context, executionOf(context, turn, wait), (why) => closed(turn, why, ownership));
    // Stopped in line, or begun by its key after the engine had forgotten it: all that is left is to tell.
    if (end === "over") await retryWhileStoreAway({ clock, signal }, () => notify(turn));
  };

  const executionOf = (context: ports.WorkContext, turn: AcceptedTurn, wait: TurnWait | undefined): Execution => {
    const { signal } = context;
    const ownership = engine.isShared ? context.held : undefined;
    return {
      ...{ turn, wait, of: "background", toolIds: turn.toolIds, timeoutMs },
      // No client receives its output. The output is stored in case the process dies.
      notify() {},
      said: async () => ({ history: [], input: [{ type: "text", text: turn.prompt }] }),
      deliver: (message) => deliveries.add(turn, message),
      stopOf: () => records.stopOf(turn),
      begin: (begun) => records.begin(turn, begun),
      goOn: (due, begun) => records.goOn(turn, due, begun),
      pause: (pausing, entry) => endWork(engine, context, (condition) => records.wait(turn, pausing, entry, condition)),
      async ending(end, { transcript }) {
        transcript.stop();
        await transcript.settled();
        // The steps after the end must also happen after a kill. In that case the work ends later, and `closed` performs them.
        const retry = retries.after(turn, end);
        if (retry) await retryWhileStoreAway({ clock, signal }, () => retries.plan(turn, retry));
        const isLast = !turn.tell && !transcript.isWritten;
        return {
          write(written, isWhole) {
            const write = (condition: OwnershipCondition) =>
              retry && isWhole ? records.putOff(turn, written, retry, condition) : records.end(turn, written, condition);
            return isLast ? endWork(engine, context, write) : write(ownership);
          },
          async after() {
            if (retry)
              telemetry.log.info("A background turn will be played again", { turn: turn.turnId, agent: turn.agentId, ...retry });
            if (isLast) return;
            await retryWhileStoreAway({ clock, signal }, () => notify(turn));
            // No other code removes it. If the process stops meanwhile, the next start closes the turn and removes it.
            await retryWhileStoreAway({ clock, signal }, () => transcript.remove());
          },
        };
      },
    };
  };

  /** Closes a turn whose process died or stopped before its end was stored: it failed, with the text so far (open points 9). */
  const closed = async (turn: AcceptedTurn, why: Partial<TurnEnd> = {}, ownership?: OwnershipCondition): Promise<void> => {
    // Its process died after the commit of its wait, and before the engine had the end of this work.
    if (await records.isPast(turn)) return;
    const stop = await records.stopOf(turn);
    // The caller who stopped it was told that it will stop, so a restart must not replace this reason.
    const asStopped: Partial<TurnEnd> = stop === undefined ? why : { status: "interrupted", reason: stop };
    await executor.close(turn, asStopped, (end) => records.end(turn, end, ownership));
    await notify(turn);
    await log.remove(transcriptStream(turn.turnId));
  };

  /** Report the durable end of a turn to waiting callers. */
  const notify = async (turn: AcceptedTurn): Promise<void> => {
    if (!turn.tell) return;
    await engine.signal(turn.tell.workId, turn.tell.signal, await records.endOf(turn));
  };

  return { run, closed, notify };
}
