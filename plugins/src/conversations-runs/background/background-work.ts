import { type ports, retryWhileStoreAway } from "@portico/core";
import { endWork } from "../turns/end-work.ts";
import { keepEnd, keepRestart } from "../turns/keep-end.ts";
import { type PlayGiven, playTurn } from "../turns/play-turn.ts";
import { Transcript } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import type { TurnEnd } from "../turns/turn-end.ts";
import type { TurnDesk } from "../turns/turn-desk.ts";
import { TurnTrace } from "../turns/turn-trace.ts";
import { TurnVoice } from "../turns/turn-voice.ts";
import { type createBackgroundRecords, interrupted } from "./background-records.ts";
import type { AcceptedTurn } from "./background-turn.ts";
import type { Deliveries } from "./deliveries.ts";

export interface BackgroundWorkGiven extends PlayGiven {
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  readonly deliveries: Deliveries;
  readonly desk: TurnDesk;
  /** How long a turn may take. */
  readonly timeoutMs: number;
}

/**
 * The definition of background turns for the engine: how a turn is executed, and how it is closed if its process died during the execution.
 */
export function createBackgroundWork(given: BackgroundWorkGiven) {
  const { log, engine, clock, records, deliveries, desk, timeoutMs } = given;

  /** Executes one turn. An error in the turn ends the turn. It is not a failure of the work. */
  const run = async (context: ports.WorkContext, turn: AcceptedTurn): Promise<void> => {
    const held = engine.isShared ? context.held : undefined;
    // No client receives its output. The output is stored in case the process dies.
    const transcript = new Transcript(turn.turnId, { log, clock, held, told: () => {} });
    const voice = new TurnVoice(turn, transcript);
    const trace = new TurnTrace(turn, given);
    const { signal: stopping, stop, leave } = desk.enter(turn, () => records.stopOf(turn));
    const timer = clock.after(timeoutMs, () => stop("background_timeout"));
    try {
      const { isOver, stop } = await retryWhileStoreAway({ clock, signal: context.signal }, () =>
        context.beginWith((begun) => records.begin(turn, begun)),
      );
      // Stopped in line, or begun by its key after the engine had forgotten it: all that is left is to tell.
      if (isOver) return await retryWhileStoreAway({ clock, signal: context.signal }, () => tell(turn));
      const end =
        stop === undefined
          ? await playTurn(given, {
              ...{ context, turn, toolIds: turn.toolIds, voice, stopping, trace },
              said: async () => ({ history: [], input: [{ type: "text", text: turn.prompt }] }),
              deliver: (message) => deliveries.add(turn, message),
            })
          : interrupted(stop);
      transcript.stop();
      await transcript.settled();
      // The steps after the end must also happen after a kill. In that case the work ends later, and `closed` performs them.
      const isLast = !turn.tell && !transcript.isWritten;
      await keepEnd(given, turn, end, {
        signal: context.signal,
        write: (kept) => {
          const ended = { ...kept, trace: trace.toStored() };
          return isLast
            ? endWork(engine, context, (condition) => records.end(turn, ended, condition))
            : records.end(turn, ended, held);
        },
        letGo: () => transcript.forgetHeld(),
      });
      trace.delivered();
      if (isLast) return;
      await retryWhileStoreAway({ clock, signal: context.signal }, () => tell(turn));
      // No other code removes it. If the process stops meanwhile, the next start closes the turn and removes it.
      await retryWhileStoreAway({ clock, signal: context.signal }, () => transcript.remove());
    } finally {
      timer.cancel();
      transcript.stop();
      leave();
    }
  };

  /** Closes a turn whose process died or stopped before its end was stored: it failed, with the text so far (open points 9). */
  const closed = async (turn: AcceptedTurn): Promise<void> => {
    const stop = await records.stopOf(turn);
    // The caller who stopped it was told that it will stop, so a restart must not replace this reason.
    const asStopped = (end: TurnEnd): TurnEnd => (stop === undefined ? end : { ...end, status: "interrupted", reason: stop });
    await keepRestart(log, turn, (end) => records.end(turn, asStopped(end), undefined));
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
