import { isStoreAway, ports, retryWhileStoreAway } from "@portico/core";
import { type Approval, approvalContent } from "../approvals/approval.ts";
import type { TurnWait, TurnWaits } from "../approvals/turn-waits.ts";
import { Produced } from "../turns/produced.ts";
import { readTranscript, Transcript, type TranscriptGiven } from "../turns/transcript.ts";
import type { PlayedTurn } from "../turns/turn.ts";
import type { RunningTurns } from "../turns/running-turns.ts";
import { couldNotExecute, leftBehind, nothing, type TurnEnd } from "../turns/turn-end.ts";
import type { TurnStopped } from "../turns/turn-failed.ts";
import { TurnTrace } from "../turns/turn-trace.ts";
import { TurnOutput } from "../turns/turn-output.ts";
import type { UserMessage } from "../turns/user-message.ts";
import type { OwnershipCondition } from "../turns/while-owned.ts";
import { lostTurn, type LogLine, type Pausing, pauseTurn, type ReadTurn, readTurn, stoppedTurn } from "./pause-turn.ts";
import { type PlayGiven, type Playing, playTurn } from "./play-turn.ts";

export interface TurnExecutorGiven extends PlayGiven {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly waits: TurnWaits;
  readonly running: RunningTurns;
}

/** What a turn has made while it executed. */
export interface Executed {
  readonly transcript: Transcript;
  readonly output: TurnOutput;
}

/** How a turn ends. */
export interface Ending {
  /** The commit of the end. `isWhole`: the end is as the turn came to it, and was not replaced because no store accepted it. */
  write(end: TurnEnd, isWhole: boolean): Promise<unknown>;
  /** What follows the durable end. */
  after(): void | Promise<void>;
}

/**
 * One execution of a turn, from its beginning or from a wait, as its executor sees it: its commits, and who hears of it. Queries, background
 * turns and asked turns differ in nothing else (README.md, "States and events of a turn").
 */
export interface Execution extends Pick<Playing, "toolIds" | "said"> {
  readonly turn: PlayedTurn;
  readonly of: TurnWait["of"];
  /** The wait after which it goes on. */
  readonly wait: TurnWait | undefined;
  /** How long it may execute, without its waits. Default: as its agent's limits say. */
  readonly timeoutMs?: number | undefined;
  /** Its transcript is open, and empty or as it was at the wait. */
  opened?(transcript: Transcript): void;
  /** Hears each event of the turn. */
  readonly notify: TranscriptGiven["notify"];
  readonly deliver: (message: UserMessage, output: TurnOutput) => void | Promise<void>;
  /** Why it is to stop, as stores say. */
  stopOf(): Promise<string | undefined>;
  /** Its first commit. `isOver`: it has ended before, and is not played. `isSteered`: its user has said something to it already. */
  begin(
    begun: OwnershipCondition,
  ): Promise<{ readonly stop: string | undefined; readonly isOver?: boolean; readonly isSteered?: boolean }>;
  /** The commit with which it goes on after its wait. */
  goOn(
    wait: TurnWait,
    begun: OwnershipCondition,
  ): Promise<{ readonly stop: string | undefined; readonly approvals: readonly Approval[]; readonly isSteered?: boolean }>;
  /** What its user said to it, beside the messages with these IDs. Absent for a turn without a conversation. */
  steering?(taken: readonly string[]): Promise<readonly { readonly id: string; readonly text: string }[]>;
  /** It has begun. */
  began?(transcript: Transcript): void;
  /** The commit with which it begins to wait (`pauseTurn`). */
  pause(pausing: Pausing, entry: LogLine): Promise<number | undefined>;
  /** A stop arrived here while the wait was written, and did not find the wait. */
  stopWait?(reason: string): Promise<unknown>;
  /** Before the end is written. */
  ending(end: TurnEnd, executed: Executed): Promise<Ending>;
  /** This process has done its part, whatever came of it. */
  leave?(): void;
}

/** Executes turns of all kinds. */
export function createTurnExecutor(given: TurnExecutorGiven) {
  const { engine, log, clock, waits, running, telemetry } = given;

  /** Executes a turn to its end or its next wait. Returns the end, `waiting`, or `over` if it had ended before. */
  const execute = async (context: ports.WorkContext, execution: Execution): Promise<TurnEnd | "waiting" | "over"> => {
    const { turn, wait, timeoutMs } = execution;
    const { signal } = context;
    const whileAway = <T>(attempt: () => Promise<T>) => retryWhileStoreAway({ clock, signal }, attempt);
    const before: ReadTurn | undefined = wait && (await whileAway(() => readTurn(log, turn.turnId, wait.number)));
    const transcript = new Transcript(turn.turnId, {
      ...{ log, clock, notify: execution.notify, before: before?.transcript },
      ownership: engine.isShared ? context.held : undefined,
    });
    execution.opened?.(transcript);
    const output = new TurnOutput(turn, transcript, before);
    const trace = new TurnTrace(turn, given, before?.state?.trace);
    // Another process has the turn: what this one still says is not its.
    const onAbort = () => signal.reason instanceof ports.EngineFenced && transcript.stop();
    signal.addEventListener("abort", onAbort);
    const { signal: stopping, stop: abort, steer, steeredBy, leave } = running.enter(turn, () => execution.stopOf());
    const timer =
      timeoutMs === undefined
        ? undefined
        : clock.after(Math.max(0, timeoutMs - (before?.state?.executedMs ?? 0)), () => abort("background_timeout"));
    try {
      const { isOver, stop, approvals, isSteered } = await whileAway(() =>
        context.beginWith(async (begun) =>
          wait
            ? { isOver: false, ...(await execution.goOn(wait, begun)) }
            : { isOver: false, approvals: [], ...(await execution.begin(begun)) },
        ),
      );
      if (isOver) return "over";
      if (isSteered) steer();
      const read = () => execution.steering!(output.produced.steeredBy);
      // Another process may have accepted a message a moment ago.
      const steering = execution.steering && (() => (engine.isShared ? read() : steeredBy(read)));
      if (!wait) execution.began?.(transcript);
      for (const approval of approvals) output.sayDecision(approvalContent(approval));
      const play = () =>
        playTurn(given, {
          ...{ context, turn, toolIds: execution.toolIds, said: execution.said, output, stopping, trace, steering },
          deliver: (message) => execution.deliver(message, output),
          resumed: before?.state && { state: before.state, decided: approvals },
        });
      const played = stop !== undefined ? stoppedTurn(output, stop) : wait && !before?.state ? lostTurn(output) : await play();
      const pausing = { turn, output, transcript, signal, of: execution.of, number: (wait?.number ?? 0) + 1 };
      const end =
        played.status === "waiting"
          ? await pauseTurn({ clock, telemetry, waits }, pausing, played, (...asked) => execution.pause(...asked))
          : played;
      if (!end) {
        leave();
        if (stopping.aborted) await whileAway(async () => execution.stopWait?.((stopping.reason as TurnStopped).reason));
        return "waiting";
      }
      const ending = await execution.ending(end, { transcript, output });
      const write = (written: TurnEnd) =>
        whileAway(() => ending.write({ ...written, trace: trace.toStored(), spent: trace.usage }, written === end));
      await write(end).catch((error: unknown) => {
        if (isStoreAway(error) || error instanceof ports.EngineFenced) throw error;
        signal.throwIfAborted();
        telemetry.log.error("The end of a turn could not be kept as it was", { turn: turn.turnId }, error);
        transcript.dropUnwritten();
        return write(notStored);
      });
      trace.delivered();
      await ending.after();
      return end;
    } finally {
      // The work may wait for long after this.
      signal.removeEventListener("abort", onAbort);
      timer?.cancel();
      transcript.stop();
      execution.leave?.();
      leave();
    }
  };

  return {
    /** As `execute`. If the turn cannot be executed for a reason outside of its agent, `close` ends it: otherwise its run would never end. */
    async run(
      context: ports.WorkContext,
      execution: Execution,
      close: (why: Partial<TurnEnd>) => Promise<void>,
    ): Promise<TurnEnd | "waiting" | "over" | "closed"> {
      const { signal } = context;
      try {
        return await execute(context, execution);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ports.EngineFenced) throw error;
        telemetry.log.error("A turn could not be executed", { turn: execution.turn.turnId }, error);
        await retryWhileStoreAway({ clock, signal }, () => close(couldNotExecute));
        return "closed";
      }
    },

    /**
     * The end of a turn whose process died, or that could not be executed: failed, with its stored text (open points 9). `write` gets the number of
     * its messages.
     */
    async close(turn: PlayedTurn, why: Partial<TurnEnd>, write: (end: TurnEnd, seq: number) => Promise<unknown>): Promise<void> {
      const produced = new Produced();
      for await (const event of readTranscript(log, turn.turnId)) produced.add(event);
      const restarted = { status: "failed", reason: "process_restart" } as const;
      try {
        await write({ ...leftBehind(produced), ...restarted, ...why }, produced.seq);
      } catch (error) {
        if (isStoreAway(error)) throw error;
        await write({ ...nothing, ...restarted, ...why }, produced.seq);
      }
    },
  };
}

export type TurnExecutor = ReturnType<typeof createTurnExecutor>;

/** Replaces an end that no store accepts. */
const notStored: TurnEnd = {
  ...nothing,
  status: "failed",
  reason: "error",
  failure: { code: "internal_error", message: "What the turn produced could not be kept" },
};
