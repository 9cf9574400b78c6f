import type { ports } from "@portico/core";
import { keepEnd, keepRestart } from "../turns/keep-end.ts";
import { persistently } from "../turns/persistently.ts";
import { type PlayGiven, playTurn } from "../turns/play-turn.ts";
import { Transcript } from "../turns/transcript.ts";
import { transcriptStream } from "../turns/turn.ts";
import type { TurnDesk } from "../turns/turn-desk.ts";
import { TurnVoice } from "../turns/turn-voice.ts";
import type { createBackgroundRecords } from "./background-records.ts";
import type { AcceptedTurn } from "./background-turn.ts";
import type { Deliveries } from "./deliveries.ts";

export interface BackgroundWorkGiven extends PlayGiven {
  readonly log: ports.EventLog;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  readonly deliveries: Deliveries;
  readonly desk: TurnDesk;
  /** How long a turn may take. */
  readonly timeoutMs: number;
}

/** What the engine is told of background turns: how one is executed, and how one is closed that was executing when its process died. */
export function createBackgroundWork(given: BackgroundWorkGiven) {
  const { log, clock, records, deliveries, desk, timeoutMs } = given;

  /** Executes one turn. What goes wrong in it is its end, and no failure of the work. */
  const run = async (context: ports.WorkContext, turn: AcceptedTurn): Promise<void> => {
    // Nobody hears it. What it says is written down for the case that the process dies.
    const transcript = new Transcript(turn.turnId, { log, clock, told: () => {} });
    const voice = new TurnVoice(turn, transcript);
    const { signal: stopping, stop, leave } = desk.enter(turn);
    const timer = clock.after(timeoutMs, () => stop("background_timeout"));
    try {
      await persistently(clock, context.signal, () => records.begin(turn));
      const end = await playTurn(given, {
        ...{ context, turn, toolIds: turn.toolIds, voice, stopping },
        said: async () => ({ history: [], input: [{ type: "text", text: turn.prompt }] }),
        deliver: (message) => deliveries.add(turn, message),
      });
      transcript.stop();
      await keepEnd(given, turn, end, {
        signal: context.signal,
        write: (ended) => records.end(turn, ended),
        letGo: () => transcript.forgetHeld(),
      });
      // Nobody else ever looks for it. Where the process stops meanwhile, the turn is closed at the next start, and that removes it.
      await persistently(clock, context.signal, () => transcript.remove());
    } finally {
      timer.cancel();
      transcript.stop();
      leave();
    }
  };

  /** Closes a turn whose process died or stopped before its end was kept: failed, with what it had said (open points 9). */
  const closed = async (turn: AcceptedTurn): Promise<void> => {
    await keepRestart(log, turn, (end) => records.end(turn, end));
    await log.remove(transcriptStream(turn.turnId));
  };

  return { run, closed };
}
