import { ports, retryWhileStoreAway } from "@portico/core";
import { toldOf } from "../approvals/approval.ts";
import { lostTurn, pauseTurn, stoppedTurn } from "../approvals/pause-turn.ts";
import { readTurn } from "../approvals/paused-turn.ts";
import type { TurnWaits } from "../approvals/turn-waits.ts";
import { endWork } from "../turns/end-work.ts";
import { keepEnd, keepRestart } from "../turns/keep-end.ts";
import { type PlayGiven, playTurn } from "../turns/play-turn.ts";
import { Transcript } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import { couldNotExecute, type TurnEnd } from "../turns/turn-end.ts";
import type { TurnDesk } from "../turns/turn-desk.ts";
import { TurnTrace } from "../turns/turn-trace.ts";
import { TurnVoice } from "../turns/turn-voice.ts";
import type { HeldCondition } from "../turns/while-held.ts";
import type { createBackgroundRecords } from "./background-records.ts";
import type { AcceptedTurn } from "./background-turn.ts";
import type { Deliveries } from "./deliveries.ts";
import type { PlannedRetries } from "./planned-retries.ts";

export interface BackgroundWorkGiven extends PlayGiven {
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  readonly waits: TurnWaits;
  readonly retries: PlannedRetries;
  readonly deliveries: Deliveries;
  readonly desk: TurnDesk;
  /** How long a turn may take. */
  readonly timeoutMs: number;
}

/**
 * The definition of background turns for the engine: how a turn is executed, and how it is closed if its process died during the execution.
 */
export function createBackgroundWork(given: BackgroundWorkGiven) {
  const { log, engine, clock, records, retries, waits, deliveries, desk, timeoutMs, telemetry } = given;

  /** Executes one turn, from its beginning or from a wait. An error in the turn ends the turn. It is not a failure of the work. */
  const run = async (context: ports.WorkContext, turn: AcceptedTurn): Promise<void> => {
    const held = engine.isShared ? context.held : undefined;
    try {
      await execute(context, turn);
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof ports.EngineFenced) throw error;
      // Not an error of the agent. Without this, its run would never end.
      telemetry.log.error("A turn could not be executed", { turn: turn.turnId }, error);
      await retryWhileStoreAway({ clock, signal: context.signal }, () => closed(turn, couldNotExecute, held));
    }
  };

  const execute = async (context: ports.WorkContext, turn: AcceptedTurn): Promise<void> => {
    const { signal } = context;
    const held = engine.isShared ? context.held : undefined;
    const wait =
      turn.part === undefined ? undefined : await retryWhileStoreAway({ clock, signal }, () => waits.find(turn.turnId));
    // It went on before, in work that the engine does not remember.
    if (wait?.number !== turn.part) return;
    const before = wait && (await retryWhileStoreAway({ clock, signal }, () => readTurn(log, turn.turnId, wait.number)));
    // No client receives its output. The output is stored in case the process dies.
    const transcript = new Transcript(turn.turnId, { log, clock, held, told: () => {}, before: before?.transcript });
    const voice = new TurnVoice(turn, transcript, before);
    const trace = new TurnTrace(turn, given, before?.kept?.trace);
    const { signal: stopping, stop, leave } = desk.enter(turn, () => records.stopOf(turn));
    const timer = clock.after(Math.max(0, timeoutMs - (before?.kept?.executedMs ?? 0)), () => stop("background_timeout"));
    try {
      const { isOver, stop, approvals } = await retryWhileStoreAway({ clock, signal }, () =>
        context.beginWith(async (begun) =>
          wait
            ? { isOver: false, ...(await records.goOn(turn, wait, begun)) }
            : { approvals: [], ...(await records.begin(turn, begun)) },
        ),
      );
      // Stopped in line, or begun by its key after the engine had forgotten it: all that is left is to tell.
      if (isOver) return await retryWhileStoreAway({ clock, signal }, () => tell(turn));
      if (wait) for (const approval of approvals) voice.tellApproval(toldOf(approval));
      const play = () =>
        playTurn(given, {
          ...{ context, turn, toolIds: turn.toolIds, voice, stopping, trace },
          said: async () => ({ history: [], input: [{ type: "text", text: turn.prompt }] }),
          deliver: (message) => deliveries.add(turn, message),
          resumed: before?.kept && { kept: before.kept, decided: approvals },
        });
      const played = stop !== undefined ? stoppedTurn(voice, stop) : wait && !before?.kept ? lostTurn(voice) : await play();
      const pausing = { turn, voice, transcript, signal, of: "background", number: (wait?.number ?? 0) + 1 } as const;
      const end =
        played.status === "waiting"
          ? await pauseTurn(given, pausing, played, (asked, entry) =>
              endWork(engine, context, (condition) => records.wait(turn, asked, entry, condition)),
            )
          : played;
      if (!end) return;
      transcript.stop();
      await transcript.settled();
      // The steps after the end must also happen after a kill. In that case the work ends later, and `closed` performs them.
      const retry = retries.after(turn, end);
      if (retry) await retryWhileStoreAway({ clock, signal: context.signal }, () => retries.plan(turn, retry));
      const isLast = !turn.tell && !transcript.isWritten;
      await keepEnd(given, turn, end, {
        signal,
        write: (kept) => {
          const ended = { ...kept, trace: trace.toStored(), spent: trace.usage };
          const write = (condition: HeldCondition) =>
            retry && kept === end ? records.putOff(turn, ended, retry, condition) : records.end(turn, ended, condition);
          return isLast ? endWork(engine, context, write) : write(held);
        },
        letGo: () => transcript.forgetHeld(),
      });
      if (retry)
        telemetry.log.info("A background turn will be played again", { turn: turn.turnId, agent: turn.agentId, ...retry });
      trace.delivered();
      if (isLast) return;
      await retryWhileStoreAway({ clock, signal }, () => tell(turn));
      // No other code removes it. If the process stops meanwhile, the next start closes the turn and removes it.
      await retryWhileStoreAway({ clock, signal }, () => transcript.remove());
    } finally {
      timer.cancel();
      transcript.stop();
      leave();
    }
  };

  /** Closes a turn whose process died or stopped before its end was stored: it failed, with the text so far (open points 9). */
  const closed = async (turn: AcceptedTurn, why: Partial<TurnEnd> = {}, held?: HeldCondition): Promise<void> => {
    // Its process died after the commit of its wait, and before the engine had the end of this work.
    if (await records.isPast(turn)) return;
    const stop = await records.stopOf(turn);
    // The caller who stopped it was told that it will stop, so a restart must not replace this reason.
    const asStopped = (end: TurnEnd): TurnEnd =>
      stop === undefined ? { ...end, ...why } : { ...end, status: "interrupted", reason: stop };
    await keepRestart(log, turn, (end) => records.end(turn, asStopped(end), held));
    await tell(turn);
    await log.remove(transcriptStream(turn.turnId));
  };

  /** Report the durable end of a turn to waiting callers. */
  const tell = async (turn: AcceptedTurn): Promise<void> => {
    if (!turn.tell) return;
    await engine.signal(turn.tell.workId, turn.tell.signal, await records.endOf(turn));
  };

  return { run, closed, tell };
}
