import { type ports, retryWhileStoreAway } from "@portico/core";
import type { TurnWait, TurnWaits } from "../approvals/turn-waits.ts";
import type { createBackgroundRecords } from "../background/background-records.ts";
import { ASKED_TURN, type AskedTurn } from "../background/background-turn.ts";
import type { SaidToTurn } from "../background/said-to-turns.ts";
import type { Execution, TurnExecutor } from "../execution/execute-turn.ts";
import type { SaidToAgent } from "../execution/play-turn.ts";
import { ASKED_OUTPUT_MS } from "../limits.ts";
import type { TurnRoom } from "../turns/shown-files.ts";
import { transcriptStream } from "../turns/turn.ts";
import type { TurnEnd } from "../turns/turn-end.ts";
import { endWork, type OwnershipCondition } from "../turns/while-owned.ts";
import type { FollowedTurn } from "./followed-turn.ts";

export interface AskedWorkGiven {
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly executor: TurnExecutor;
  readonly serverInstanceId: string;
  readonly isAlive: (serverInstanceId: string) => Promise<boolean | undefined>;
  readonly records: ReturnType<typeof createBackgroundRecords>;
  readonly waits: TurnWaits;
  readonly said: ports.Collection<SaidToTurn>;
  /** The turns whose callers wait in this process, by `turnId`. */
  readonly followed: ReadonlyMap<string, FollowedTurn>;
}

/** Turns that execute in this process at once. */
const CONCURRENCY = 1024;
const FORGET = "asked-turn-output";

/**
 * Tells the engine how asked turns are executed, and how a turn is closed if its process died. They have the records of background turns: a run of
 * their own, a receipt, and no conversation. Each has a queue of its own, because its caller waits.
 */
export function defineAskedWork(given: AskedWorkGiven): void {
  const { log, engine, clock, executor, serverInstanceId, isAlive, records, waits, said, followed } = given;
  const removeOutput = (turnId: string): Promise<unknown> => log.remove(transcriptStream(turnId));

  const run = async (context: ports.WorkContext, turn: AskedTurn): Promise<void> => {
    const { signal } = context;
    const wait =
      turn.part === undefined ? undefined : await retryWhileStoreAway({ clock, signal }, () => waits.find(turn.turnId));
    // It went on before, in work that the engine does not remember.
    if (wait?.number !== turn.part) return;
    // Its caller went with its process, before the turn began.
    if (!wait && (await isAlive(turn.askedIn)) === false)
      return retryWhileStoreAway({ clock, signal }, () => context.beginWith((begun) => closed(turn, {}, begun)));
    const ownership = engine.isShared ? context.held : undefined;
    await executor.run(context, executionOf(context, turn, wait), (why) => closed(turn, why, ownership));
  };

  const executionOf = (context: ports.WorkContext, turn: AskedTurn, wait: TurnWait | undefined): Execution => {
    const { signal } = context;
    const whileAway = <T>(attempt: () => Promise<T>) => retryWhileStoreAway({ clock, signal }, attempt);
    const listener = () => followed.get(turn.turnId);
    return {
      ...{ turn, wait, of: "asked" },
      opened: () => listener()?.entered(),
      notify: (event, position, size) => listener()?.hear(event, position, size),
      said: (stopped, room) => everythingSaid(said, turn, stopped, room),
      deliver: (message, output) => output.deliver(message),
      stopOf: () => records.stopOf(turn),
      begin: (begun) => records.begin(turn, begun),
      goOn: (due, begun) => records.goOn(turn, due, begun),
      pause: (pausing, entry) => endWork(engine, context, (condition) => records.wait(turn, pausing, entry, condition)),
      async ending(_end, { transcript }) {
        // Its caller reads the output in another process, and then this work removes it.
        const isElsewhere = turn.askedIn !== serverInstanceId;
        if (isElsewhere) {
          await whileAway(() => transcript.flush());
          await whileAway(() => engine.start(FORGET, `${turn.turnId}/output`, { turnId: turn.turnId }));
        }
        transcript.stop();
        await transcript.settled();
        const isLast = isElsewhere || !transcript.isWritten;
        return {
          write: (end) =>
            isLast
              ? endWork(engine, context, (condition) => records.end(turn, end, condition))
              : records.end(turn, end, engine.isShared ? context.held : undefined),
          // No other code removes it. If the process stops meanwhile, the next start closes the turn and removes it.
          after: async () => void (isLast || (await whileAway(() => transcript.remove()))),
        };
      },
      leave: () => listener()?.left(),
    };
  };

  /** Closes a turn whose process died or stopped before its end was stored: it failed, with the text so far (open points 9). */
  const closed = async (turn: AskedTurn, why: Partial<TurnEnd> = {}, ownership?: OwnershipCondition): Promise<void> => {
    // Its process died after the commit of its wait, and before the engine had the end of this work.
    if (await records.isPast(turn)) return;
    const stop = await records.stopOf(turn);
    const asStopped: Partial<TurnEnd> = stop === undefined ? why : { status: "interrupted", reason: stop };
    await executor.close(turn, asStopped, (end) => records.end(turn, end, ownership));
    await removeOutput(turn.turnId);
  };

  engine.define<AskedTurn, void>(ASKED_TURN, run, {
    onInterrupted: "close",
    beginsWithBatch: true,
    closed: (_id, turn) => closed(turn),
    concurrency: CONCURRENCY,
  });
  engine.define<{ readonly turnId: string }, void>(
    FORGET,
    async ({ sleep, step }, { turnId }) => {
      await sleep("kept", ASKED_OUTPUT_MS);
      await step("remove", () => removeOutput(turnId).then(() => null), { repeatable: true });
    },
    { onInterrupted: "resume" },
  );
}

/** Media that have no room in memory become notes. */
async function everythingSaid(
  said: ports.Collection<SaidToTurn>,
  { runId, prompt }: AskedTurn,
  signal: AbortSignal,
  room: TurnRoom,
): Promise<SaidToAgent> {
  const { history, input } = (await said.get(runId))?.value ?? { history: [], input: [{ type: "text", text: prompt }] };
  const all = [...history.flatMap(({ parts }) => parts), ...input];
  const bytes = all.reduce((sum, part) => sum + (part.type === "media" ? part.data.length : 0), 0);
  if (await room.wait(bytes, signal)) return { history, input };
  const noted = (parts: readonly ports.MessagePart[]): readonly ports.MessagePart[] =>
    parts.map((part) =>
      part.type === "media"
        ? { type: "text", text: `[A file, ${part.mediaType}: too much is being shown at once, it cannot be shown now]` }
        : part,
    );
  return { history: history.map(({ role, parts }) => ({ role, parts: noted(parts) })), input: noted(input) };
}
