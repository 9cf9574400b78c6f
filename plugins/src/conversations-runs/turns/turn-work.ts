import { ports, retryWhileStoreAway } from "@portico/core";
import { toldOf } from "../approvals/approval.ts";
import { lostTurn, pauseTurn, stoppedTurn } from "../approvals/pause-turn.ts";
import { readTurn } from "../approvals/paused-turn.ts";
import { type TurnWait, wakeSignal } from "../approvals/turn-wait.ts";
import type { TurnWaits } from "../approvals/turn-waits.ts";
import { readHistory } from "../conversations/messages.ts";
import type { Audiences } from "../delivery/audiences.ts";
import { lifeOf } from "../delivery/numbered-turn.ts";
import { EVENT_CHARACTERS, SUMMARY_CHARACTERS } from "../limits.ts";
import type { ClientRequest } from "../requests/client-requests.ts";
import { boundedText } from "./bounds.ts";
import { endWork } from "./end-work.ts";
import { keepEnd, keepRestart } from "./keep-end.ts";
import { type PlayGiven, playTurn, type SaidToAgent } from "./play-turn.ts";
import { createShownFiles, storedParts } from "./shown-files.ts";
import type { TurnRoom } from "./shown-room.ts";
import { Transcript } from "./transcript.ts";
import { identifiersOf, type Turn, type TurnEvent, transcriptStream } from "./turn.ts";
import type { TurnDesk } from "./turn-desk.ts";
import { couldNotExecute, statusAfter, type TurnEnd } from "./turn-end.ts";
import type { StoredTurn, TurnRecords } from "./turn-records.ts";
import type { TurnStopped } from "./turn-failed.ts";
import { TurnTrace } from "./turn-trace.ts";
import { TurnVoice } from "./turn-voice.ts";
import type { HeldCondition } from "./while-held.ts";

export interface TurnWorkGiven extends PlayGiven {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly records: TurnRecords;
  readonly waits: TurnWaits;
  readonly desk: TurnDesk;
  readonly audiences: Audiences;
}

/**
 * What the engine is told of turns: how one is executed. Its work is resumed, and executes no step: the records say where the turn is. One that
 * was executing when its process died is closed (open points 9). One that waits for a person goes on waiting (open points 14).
 */
export function createTurnWork(given: TurnWorkGiven) {
  const { engine, log, clock, records, waits, desk, audiences, telemetry } = given;

  /** Executes one turn. An error in the turn ends the turn. It is not a failure of the work. Undefined if the turn was closed. */
  const run = async (context: ports.WorkContext, turn: Turn): Promise<TurnEnd | undefined> => {
    const { signal } = context;
    for (;;) {
      const stored = await retryWhileStoreAway({ clock, signal }, () => records.read(turn));
      const { state, waits: number } = stored.request.value;
      const wait = number === undefined ? undefined : await retryWhileStoreAway({ clock, signal }, () => waits.find(turn.turnId));
      if (state !== "reserved" && !wait) {
        await close(context, turn);
        return undefined;
      }
      if (wait && !wait.isDue) {
        // Parked after a moment: it costs no seat and no memory, and outlives its process.
        await context.waitFor(wakeSignal(wait.number));
        continue;
      }
      try {
        const end = await execute(context, turn, stored, wait);
        if (end) return end;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ports.EngineFenced) throw error;
        // Not an error of the agent. Without this, its run would never end.
        telemetry.log.error("A turn could not be executed", { turn: turn.turnId }, error);
        await retryWhileStoreAway({ clock, signal }, () => context.beginWith((begun) => closed(turn, begun, couldNotExecute)));
        return undefined;
      }
    }
  };

  /** Executes a turn from its beginning, or from a wait, to its end or its next wait. Returns the end. */
  const execute = async (
    context: ports.WorkContext,
    turn: Turn,
    stored: StoredTurn,
    wait: TurnWait | undefined,
  ): Promise<TurnEnd | undefined> => {
    const { signal } = context;
    const listener = { userId: turn.userId, clientInstanceId: turn.clientInstanceId ?? "" };
    const held = engine.isShared ? context.held : undefined;
    const before = wait && (await retryWhileStoreAway({ clock, signal }, () => readTurn(log, turn.turnId, wait.number)));
    const transcript: Transcript = new Transcript(turn.turnId, {
      ...{ log, clock, held, before: before?.transcript },
      told: (event, position, size) => audiences.tell(listener, watched, event, position, size),
    });
    const watched = audiences.watch(listener, turn, transcript, wait && beganIn(stored.request.value));
    const voice = new TurnVoice(turn, transcript, before);
    // Another process has the turn: what this one still says is not its.
    const onAbort = () => signal.reason instanceof ports.EngineFenced && transcript.stop();
    signal.addEventListener("abort", onAbort);
    const trace = new TurnTrace(turn, given, before?.kept?.trace);
    const { signal: stopping, leave } = desk.enter(turn, () => records.stopOf(turn));
    try {
      const { stop, approvals } = await retryWhileStoreAway({ clock, signal }, () =>
        context.beginWith(async (begun) =>
          wait
            ? records.goOn(turn, wait, begun)
            : { approvals: [], ...(await records.begin(turn, watched.number, begun, stored)) },
        ),
      );
      if (wait) {
        for (const approval of approvals) voice.tellApproval(toldOf(approval));
      } else {
        audiences.announce(listener, statusEvent(turn, "running"));
        void transcript.add({ event: "query:started", data: identifiersOf(turn) }, 0);
      }
      const play = () =>
        playTurn(given, {
          ...{ context, turn, voice, stopping, trace },
          said: (stopped, room) => everythingSaid(given, turn, stopped, room),
          deliver: (message) => voice.deliver(message),
          resumed: before?.kept && { kept: before.kept, decided: approvals },
        });
      const played = stop !== undefined ? stoppedTurn(voice, stop) : wait && !before?.kept ? lostTurn(voice) : await play();
      const pausing = { turn, voice, transcript, signal, of: "query", number: (wait?.number ?? 0) + 1 } as const;
      const end =
        played.status === "waiting"
          ? await pauseTurn(given, pausing, played, (asked, entry) => records.wait(turn, asked, entry, context.held))
          : played;
      if (!end) {
        leave();
        // A stop that came while the wait was written found the turn at the desk, and not its wait.
        if (stopping.aborted) await retryWhileStoreAway({ clock, signal }, () => stopWait(turn, stopping.reason as TurnStopped));
        return undefined;
      }
      await keepEnd(given, turn, end, {
        signal,
        write: (ended) =>
          endWork(engine, context, (condition) =>
            transcript.end([endEvent(turn, ended, voice.seq)], (entry) =>
              records.end(turn, { ...ended, trace: trace.toStored(), spent: trace.usage }, entry, watched.number, condition),
            ),
          ),
        letGo: () => transcript.forgetHeld(),
      });
      trace.delivered();
      audiences.announce(listener, statusEvent(turn, statusAfter(turn, end)));
      return end;
    } finally {
      // The work may wait for long after this.
      signal.removeEventListener("abort", onAbort);
      transcript.stop();
      audiences.finish(listener, watched);
      leave();
    }
  };

  const stopWait = ({ userId, clientRequestId, sessionId }: Turn, { reason }: TurnStopped) =>
    records.stop(userId, clientRequestId, sessionId, reason);

  /** Closes a turn whose process died: failed, with what it had said kept (open points 9). Its clients hear so from this process. */
  const close = async (context: ports.WorkContext, turn: Turn): Promise<void> => {
    const { signal } = context;
    for (;;) {
      try {
        await retryWhileStoreAway({ clock, signal }, () => context.beginWith((begun) => closed(turn, begun)));
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ports.EngineFenced) throw error;
        telemetry.log.error(
          "The end of an interrupted turn could not be kept, and will be tried again",
          { turn: turn.turnId },
          error,
        );
        await clock.sleep(CLOSE_AGAIN_MS, signal);
      }
    }
  };

  const closed = async (turn: Turn, held: HeldCondition, why: Partial<TurnEnd> = {}): Promise<void> => {
    const number = audiences.count();
    await keepRestart(log, turn, (restarted, seq) => {
      const end = { ...restarted, ...why };
      const entry = { stream: transcriptStream(turn.turnId), entry: { events: [endEvent(turn, end, seq)] } };
      return records.end(turn, end, entry, number, held);
    });
    const began = await records.beganAs(turn);
    if (!began) return;
    const listener = { userId: turn.userId, clientInstanceId: turn.clientInstanceId ?? "" };
    audiences.closed(listener, { clientRequestId: turn.clientRequestId, turnId: turn.turnId, ...began });
    audiences.announce(listener, statusEvent(turn, "failed"));
  };

  return { run };
}

/** Pause before the end of an interrupted turn is written again that could not be. */
const CLOSE_AGAIN_MS = 60_000;

/** The process in which a turn began, and its number there. */
function beganIn({ serverInstanceId, number }: ClientRequest): { readonly life: string; readonly number: number } | undefined {
  return serverInstanceId === undefined || number === undefined ? undefined : { life: lifeOf(serverInstanceId), number };
}

/** The conversation as the model sees it. The user message of this turn is the newest: it is what the agent is told now, and no history. */
async function everythingSaid(
  { log, files }: TurnWorkGiven,
  turn: Turn,
  signal: AbortSignal,
  room: TurnRoom,
): Promise<SaidToAgent> {
  // The turn that opens a conversation has nothing before it.
  const earlier = turn.opens ? [] : (await readHistory(log, turn.conversationId, signal)).slice(0, -1);
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
