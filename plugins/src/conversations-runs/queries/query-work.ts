import { ports, retryWhileStoreAway } from "@portico/core";
import { type TurnWait, type TurnWaits, wakeSignal } from "../approvals/turn-waits.ts";
import type { Conversations } from "../conversations/conversations.ts";
import { readHistory } from "../conversations/messages.ts";
import { type Listener, type Watched } from "../delivery/subscriber.ts";
import { processIdOf } from "../delivery/numbered-turn.ts";
import type { Subscribers } from "../delivery/subscribers.ts";
import type { Execution, TurnExecutor } from "../execution/execute-turn.ts";
import type { SaidToAgent } from "../execution/play-turn.ts";
import { EVENT_CHARACTERS, SUMMARY_CHARACTERS } from "../limits.ts";
import { boundedText } from "../turns/bounds.ts";
import { endWork, type OwnershipCondition } from "../turns/while-owned.ts";
import { createShownFiles, storedParts, type TurnRoom } from "../turns/shown-files.ts";
import { identifiersOf, type Turn, type TurnEvent, transcriptStream } from "../turns/turn.ts";
import { statusAfter, type TurnEnd } from "../turns/turn-end.ts";
import type { ClientRequest } from "../requests/client-requests.ts";
import type { QueryRecords, StoredTurn } from "./query-records.ts";

export interface QueryWorkGiven {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
  readonly executor: TurnExecutor;
  readonly records: QueryRecords;
  readonly conversations: Pick<Conversations, "branches">;
  readonly waits: TurnWaits;
  readonly subscribers: Subscribers;
  /** The users' uploads, if the instance accepts files. */
  readonly files: ports.UserFiles | undefined;
}

/**
 * What the engine is told of turns of queries: how one is executed. Its work is resumed, and executes no step: the records say where the turn is. One
 * that was executing when its process died is closed (open points 9). One that waits for a person goes on waiting (open points 14).
 */
export function createQueryWork(given: QueryWorkGiven) {
  const { engine, clock, executor, records, waits, subscribers, telemetry } = given;

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
        // Parked after a moment: it costs no memory, and outlives its process.
        await context.waitFor(wakeSignal(wait.number));
        continue;
      }
      const end = await executor.run(context, executionOf(context, turn, stored, wait), (why) =>
        context.beginWith((begun) => closed(turn, begun, why)),
      );
      if (typeof end === "object") return end;
      if (end !== "waiting") return undefined;
    }
  };

  const executionOf = (context: ports.WorkContext, turn: Turn, stored: StoredTurn, wait: TurnWait | undefined): Execution => {
    const listener = listenerOf(turn);
    let watched: Watched;
    return {
      ...{ turn, wait, of: "query" },
      opened: (transcript) =>
        void (watched = subscribers.watch(listener, turn, transcript, wait && beganIn(stored.request.value))),
      notify: (event, position, size) => subscribers.notify(listener, watched, event, position, size),
      said: (stopped, room) => everythingSaid(given, turn, stopped, room),
      deliver: (message, output) => output.deliver(message),
      stopOf: () => records.stopOf(turn),
      begin: (begun) => records.begin(turn, watched.number, begun, stored),
      goOn: (due, begun) => records.goOn(turn, due, begun),
      steering: (taken) => records.steeringOf(turn, taken),
      began(transcript) {
        subscribers.announce(listener, statusEvent(turn, "running"));
        void transcript.add({ event: "query:started", data: identifiersOf(turn) }, 0);
      },
      pause: (pausing, entry) => records.wait(turn, pausing, entry, context.held),
      stopWait: (reason) => records.stop(turn.userId, turn.clientRequestId, turn.sessionId, reason),
      ending: async (end, { transcript, output }) => ({
        write: (written) =>
          endWork(engine, context, (condition) =>
            transcript.end([endEvent(turn, written, output.seq)], (entry) =>
              records.end(turn, written, entry, watched.number, condition),
            ),
          ),
        after: () => subscribers.announce(listener, statusEvent(turn, statusAfter(turn, end))),
      }),
      leave: () => subscribers.finish(listener, watched),
    };
  };

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

  const closed = async (turn: Turn, ownership: OwnershipCondition, why: Partial<TurnEnd> = {}): Promise<void> => {
    const number = subscribers.count();
    await executor.close(turn, why, (end, seq) => {
      const entry = { stream: transcriptStream(turn.turnId), entry: { events: [endEvent(turn, end, seq)] } };
      return records.end(turn, end, entry, number, ownership);
    });
    const began = await records.beganAs(turn);
    if (!began) return;
    const listener = listenerOf(turn);
    subscribers.closed(listener, { clientRequestId: turn.clientRequestId, turnId: turn.turnId, ...began });
    subscribers.announce(listener, statusEvent(turn, "failed"));
  };

  return { run };
}

const listenerOf = ({ userId, clientInstanceId = "" }: Turn): Listener => ({ userId, clientInstanceId });

/** Pause before the end of an interrupted turn is written again that could not be. */
const CLOSE_AGAIN_MS = 60_000;

/** The process in which a turn began, and its number there. */
function beganIn({
  serverInstanceId,
  number,
}: ClientRequest): { readonly processId: string; readonly number: number } | undefined {
  return serverInstanceId === undefined || number === undefined
    ? undefined
    : { processId: processIdOf(serverInstanceId), number };
}

/** The conversation as the model sees it. The user message of this turn is the newest: it is what the agent is told now, and no history. */
async function everythingSaid(
  { log, files, conversations }: QueryWorkGiven,
  turn: Turn,
  signal: AbortSignal,
  room: TurnRoom,
): Promise<SaidToAgent> {
  // The turn that opens a conversation has nothing before it.
  const earlier = turn.opens ? [] : (await readHistory(log, await branchesOf(turn, conversations), signal)).slice(0, -1);
  const messages = [...earlier.map(({ parts }) => parts), storedParts(turn)];
  const shown = await createShownFiles({ files, userId: turn.userId, room }).show(messages, signal);
  const history = earlier.map(({ role }, index) => ({ role, parts: shown[index]! }));
  const toStored = ({ text, messages: count }: ports.TurnSummary) => {
    const last = earlier[count - 1];
    return last && { type: "summary" as const, text: boundedText(text, SUMMARY_CHARACTERS), upTo: last.sequence };
  };
  return { history, input: shown.at(-1)!, toStored };
}

async function branchesOf({ conversationId }: Turn, { branches }: QueryWorkGiven["conversations"]) {
  // No branch is chosen or begun while a turn of the conversation is open.
  return { conversationId, jumps: (await branches.find(conversationId))?.value.jumps ?? [] };
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
