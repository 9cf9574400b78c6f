import { type ports, writeAgain } from "@portico/core";
import { type Conversation, type Conversations, messageStream } from "../conversations/conversations.ts";
import type { TurnWaits } from "../approvals/turn-waits.ts";
import { receiptStream } from "../runs/receipts.ts";
import { openFailedTurns } from "../background/failed-turns.ts";
import { isPlanned, type Run, type Runs } from "../runs/runs.ts";

/** A run or a conversation whose record was removed, and whose streams may still exist: by its id. */
interface RemovedRun {
  /** The conversation that was removed with it. */
  readonly conversationId?: string | undefined;
}

export type RemovedRuns = ReturnType<typeof createRemovedRuns>;

/**
 * Removes runs with their receipts, and conversations with their messages. Records go first, in one commit with a note of their streams, and
 * streams second: a kill in between leaves the note, and `finish` completes it.
 */
export function createRemovedRuns(given: {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly waits: TurnWaits;
}) {
  const { records, log, runs, conversations, waits } = given;
  const failedTurns = openFailedTurns(records);
  const removal = ({ id, version }: ports.Stored<Conversation>): readonly ports.Write[] => [
    conversations.write.remove(id, version),
    conversations.branches.write.remove(id),
  ];

  const removeStreams = async (id: string, { conversationId }: RemovedRun): Promise<void> => {
    // A background turn that is started again with the same key has the same run.
    if (!(await runs.find(id))) {
      await log.remove(receiptStream(id));
      await waits.removeOfRun(id);
    }
    if (conversationId !== undefined && !(await conversations.find(conversationId)))
      await log.remove(messageStream(conversationId));
  };
  const removeNoted = async (id: string, note: RemovedRun): Promise<void> => {
    await removeStreams(id, note);
    await runs.forget(id);
  };

  return {
    /** Complete removals that a kill interrupted. */
    finish: (closing: AbortSignal): Promise<void> =>
      runs.finishRemovals(async (notes) => {
        for (const { id, value } of notes) await removeStreams(id, value);
      }, closing),
    /**
     * Remove a run that `mayRemove`, and the conversation whose session it is. A run that is given a turn meanwhile stays. Returns the
     * removed run.
     */
    async remove(runId: string, mayRemove: MayRemove): Promise<Run | undefined> {
      const done = await writeAgain(async () => {
        const run = await runs.find(runId);
        if (!run || run.value.status === "running" || isPlanned(run.value)) return undefined;
        const { conversation_id, session_id } = run.value;
        const found = conversation_id === undefined ? undefined : await conversations.find(conversation_id);
        // A cleared run: its conversation continues without it.
        const own = found?.value.sessionId === session_id ? found : undefined;
        if (own?.value.clearing || !(await mayRemove(run.value, own?.value.lastTurnId))) return undefined;
        const note = { conversationId: own?.id } satisfies RemovedRun;
        await runs.writeAll([...runs.remove(run, note), failedTurns.write.remove(runId), ...(own ? removal(own) : [])]);
        return { run: run.value, note };
      });
      if (done) await removeNoted(runId, done.note);
      return done?.run;
    },
    /** Remove a conversation that `mayRemove`, with its messages but without its run. */
    async removeConversation(conversationId: string, mayRemove: (found: Conversation) => boolean): Promise<boolean> {
      const isRemoved = await writeAgain(async () => {
        const found = await conversations.find(conversationId);
        if (!found || found.value.clearing || !mayRemove(found.value)) return false;
        await runs.writeAll([...removal(found), runs.noteRemoval(found.id, { conversationId } satisfies RemovedRun)]);
        return true;
      });
      if (isRemoved) await removeNoted(conversationId, { conversationId });
      return isRemoved;
    },
  };
}

/** Decides over a run that does not execute. `lastTurnId` is the turn of its session that was accepted last, if it is known. */
export type MayRemove = (run: Run, lastTurnId: string | undefined) => boolean | Promise<boolean>;
