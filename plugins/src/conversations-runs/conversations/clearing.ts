import { type ports, retryWhileStoreAway, writeAgain } from "@portico/core";
import type { TurnWaits } from "../approvals/turn-waits.ts";
import type { Hints } from "../hints.ts";
import { type Runs, withEvent } from "../runs/runs.ts";
import { type Conversations, messageStream, runOfSession, workKind } from "./conversations.ts";

/** The engine's input for clearing a conversation. */
export interface ClearInput {
  readonly clear: true;
  readonly conversationId: string;
  readonly sessionId?: string | undefined;
}

/**
 * Clears conversations (open points 7 and 10). Clearing is work of the same kind and key as the conversation's turns: it survives a kill, and
 * comes after every turn that was accepted before. Those find the conversation marked, and are interrupted.
 */
export function createClearing(given: {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly conversations: Conversations;
  readonly runs: Runs;
  readonly hints: Hints;
  readonly waits: TurnWaits;
  /** Interrupts the turn that executes, in whichever process. */
  readonly interrupt: (sessionId: string) => void;
}) {
  const { engine, log, clock, ids, conversations, runs, hints, waits, interrupt } = given;

  const finish = async ({ conversationId, sessionId }: ClearInput, signal?: AbortSignal): Promise<void> => {
    try {
      if (signal) await retryWhileStoreAway({ clock, signal }, () => empty(conversationId, sessionId));
      else await empty(conversationId, sessionId);
    } catch (error) {
      hints.fail(topicOf(conversationId), error);
      throw error;
    }
    hints.notify(topicOf(conversationId), true);
  };

  const empty = async (conversationId: string, sessionId: string | undefined): Promise<void> => {
    await log.remove(messageStream(conversationId));
    const runId = sessionId === undefined ? undefined : runOfSession(sessionId);
    if (runId !== undefined) {
      await writeAgain(async () => {
        const run = await runs.find(runId);
        if (!run || run.value.cleared) return;
        const at = new Date(clock.now()).toISOString();
        // No turn of the session executes now. A record that still says so lost its end.
        const rested = run.value.status === "running" ? withEvent(run.value, "turn-failed", at) : run.value;
        await runs.writeAll(runs.unlist(run, withEvent(rested, "closed", at, { cleared: true, completed_at: at })));
      });
    }
    await writeAgain(async () => {
      const stored = await conversations.find(conversationId);
      if (!stored?.value.clearing) return;
      const { clearing: _clearing, sessionId: _session, ...rest } = stored.value;
      const cleared = { ...rest, updatedAt: new Date(clock.now()).toISOString() };
      await runs.writeAll([
        conversations.write.put(conversationId, cleared, stored.version),
        conversations.branches.write.remove(conversationId),
      ]);
    });
  };

  return {
    /** The work itself; may be done again. */
    finish,
    /** Resolves when the conversation is empty; from the call on it takes no query. False if this user has no such conversation. */
    async clear(conversationId: string, mayClear: (userId: string) => boolean, signal: AbortSignal): Promise<boolean> {
      const cleared = hints.listen<true>(topicOf(conversationId));
      try {
        const started = await writeAgain(async () => {
          const stored = await conversations.find(conversationId);
          if (!stored || !mayClear(stored.value.userId)) return undefined;
          const { sessionId } = stored.value;
          // If it is already being cleared, it is cleared again, in case the first attempt failed. No more data can be lost.
          const marked = { ...stored.value, clearing: true as const };
          // A turn that waits for a person would keep the clearing from its turn.
          const waiting = sessionId === undefined ? [] : await waits.ofSession(sessionId);
          const stopped = await Promise.all(waiting.map(({ turnId }) => waits.stop(turnId, clock.now())));
          await engine.start(
            workKind(stored.value.depth ?? 0),
            ids.id("clear_"),
            { clear: true, conversationId, sessionId } satisfies ClearInput,
            {
              key: sessionId ?? conversationId,
              records: [conversations.write.put(conversationId, marked, stored.version), ...stopped.flat()],
            },
          );
          return { sessionId, waiting };
        });
        if (!started) return false;
        if (started.sessionId !== undefined) interrupt(started.sessionId);
        for (const wait of started.waiting) await waits.wake(wait);
        const isCleared = async () => ((await conversations.find(conversationId))?.value.clearing ? undefined : true);
        return await cleared.until(isCleared, signal);
      } finally {
        cleared.close();
      }
    },
  };
}

const topicOf = (conversationId: string): string => `conversations-runs/cleared/${conversationId}`;
