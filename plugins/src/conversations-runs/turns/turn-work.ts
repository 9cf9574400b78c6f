import { ports, retryWhileStoreAway } from "@portico/core";
import { readHistory } from "../conversations/messages.ts";
import type { Audiences } from "../delivery/audiences.ts";
import { EVENT_CHARACTERS, SUMMARY_CHARACTERS } from "../limits.ts";
import { boundedText } from "./bounds.ts";
import { endWork } from "./end-work.ts";
import { keepEnd, keepRestart } from "./keep-end.ts";
import { type PlayGiven, playTurn, type SaidToAgent } from "./play-turn.ts";
import { createShownFiles, storedParts } from "./shown-files.ts";
import type { TurnRoom } from "./shown-room.ts";
import { Transcript } from "./transcript.ts";
import { identifiersOf, type Turn, type TurnEvent, transcriptStream } from "./turn.ts";
import type { TurnDesk } from "./turn-desk.ts";
import { nothing, statusAfter, type TurnEnd } from "./turn-end.ts";
import type { TurnRecords } from "./turn-records.ts";
import { TurnTrace } from "./turn-trace.ts";
import { TurnVoice } from "./turn-voice.ts";

export interface TurnWorkGiven extends PlayGiven {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly records: TurnRecords;
  readonly desk: TurnDesk;
  readonly audiences: Audiences;
}

/** What the engine is told of turns: how one is executed, and how one is closed that was executing when its process died. */
export function createTurnWork(given: TurnWorkGiven) {
  const { engine, log, clock, records, desk, audiences } = given;

  /** Executes one turn. An error in the turn ends the turn. It is not a failure of the work. */
  const run = async (context: ports.WorkContext, turn: Turn): Promise<TurnEnd> => {
    const listener = { userId: turn.userId, clientInstanceId: turn.clientInstanceId ?? "" };
    const held = engine.isShared ? context.held : undefined;
    const transcript: Transcript = new Transcript(turn.turnId, {
      ...{ log, clock, held },
      told: (event, position, size) => audiences.tell(listener, watched, event, position, size),
    });
    const watched = audiences.watch(listener, turn, transcript);
    const voice = new TurnVoice(turn, transcript);
    // Another process has the turn: what this one still says is not its.
    context.signal.addEventListener("abort", () => context.signal.reason instanceof ports.EngineFenced && transcript.stop());
    const trace = new TurnTrace(turn, given);
    const { signal: stopping, leave } = desk.enter(turn, () => records.stopOf(turn));
    try {
      const { stop } = await retryWhileStoreAway({ clock, signal: context.signal }, () =>
        context.beginWith((begun) => records.begin(turn, watched.number, begun)),
      );
      audiences.announce(listener, statusEvent(turn, "running"));
      void transcript.add({ event: "query:started", data: identifiersOf(turn) }, 0);
      const end =
        stop === undefined
          ? await playTurn(given, {
              ...{ context, turn, voice, stopping, trace },
              said: (signal, room) => everythingSaid(given, turn, signal, room),
              deliver: (message) => voice.deliver(message),
            })
          : { ...nothing, status: "interrupted" as const, reason: stop };
      await keepEnd(given, turn, end, {
        signal: context.signal,
        write: (ended) =>
          endWork(engine, context, (condition) =>
            transcript.end([endEvent(turn, ended, voice.seq)], (entry) =>
              records.end(turn, { ...ended, trace: trace.toStored() }, entry, watched.number, condition),
            ),
          ),
        letGo: () => transcript.forgetHeld(),
      });
      trace.delivered();
      audiences.announce(listener, statusEvent(turn, statusAfter(turn, end)));
      return end;
    } finally {
      transcript.stop();
      audiences.finish(listener, watched);
      leave();
    }
  };

  /** Closes a turn whose process died: failed, with what it had said kept (open points 9). Its clients hear so from this process. */
  const closed = async (turn: Turn): Promise<void> => {
    const number = audiences.count();
    await keepRestart(log, turn, (end, seq) => {
      const entry = { stream: transcriptStream(turn.turnId), entry: { events: [endEvent(turn, end, seq)] } };
      return records.end(turn, end, entry, number, undefined);
    });
    const began = await records.beganAs(turn);
    if (!began) return;
    const listener = { userId: turn.userId, clientInstanceId: turn.clientInstanceId ?? "" };
    audiences.closed(listener, { clientRequestId: turn.clientRequestId, turnId: turn.turnId, ...began });
    audiences.announce(listener, statusEvent(turn, "failed"));
  };

  return { run, closed };
}

/** The conversation as the model sees it. The user message of this turn is the newest: it is what the agent is told now, and no history. */
async function everythingSaid(
  { log, files }: TurnWorkGiven,
  turn: Turn,
  signal: AbortSignal,
  room: TurnRoom,
): Promise<SaidToAgent> {
  const earlier = (await readHistory(log, turn.conversationId, signal)).slice(0, -1);
  const messages = [...earlier.map(({ parts }) => parts), storedParts(turn)];
  const shown = await createShownFiles({ files, userId: turn.userId, room }).show(messages, signal);
  const history = earlier.map(({ role }, index) => ({ role, parts: shown[index]! }));
  const keep = ({ text, messages: count }: ports.TurnSummary) => {
    const last = earlier[count - 1];
    return last && { type: "summary" as const, text: boundedText(text, SUMMARY_CHARACTERS), upTo: last.sequence };
  };
  return { history, input: shown.at(-1)!, keep };
}

/** `seq` is the last message's, so that a client knows whether it has all of them. */
function endEvent(turn: Turn, end: TurnEnd, seq: number): TurnEvent {
  const identifiers = { ...identifiersOf(turn), seq };
  switch (end.status) {
    case "completed":
      return {
        event: "query:complete",
        data: {
          ...identifiers,
          terminal: { status: "completed", ...(end.reason !== undefined && { reason: end.reason }), runId: turn.runId },
          result: { output: boundedText(end.output, EVENT_CHARACTERS), ...(end.usage && { usage: end.usage }) },
        },
      };
    case "interrupted":
      return {
        event: "query:complete",
        data: {
          ...identifiers,
          terminal: {
            status: "interrupted",
            ...(end.reason !== undefined && { reason: end.reason }),
            partial: boundedText(end.output, EVENT_CHARACTERS),
            runId: turn.runId,
          },
        },
      };
    case "failed": {
      const { code, message } = end.failure ?? {
        code: end.reason ?? "error",
        message: "The service was restarted while the turn executed",
      };
      return { event: "query:error", data: { ...identifiers, error: message, code } };
    }
  }
}

function statusEvent({ runId, sessionId }: Turn, status: "running" | "idle" | "completed" | "failed"): TurnEvent {
  return { event: "activity:run_status", data: { runId, status, sessionId } };
}
