import type { ports } from "@portico/core";
import { type Runs, withEvent } from "../runs/runs.ts";
import { writeAgain } from "../write-again.ts";
import { type Conversations, messageStream, runOfSession, workKind } from "./conversations.ts";

/** What the engine is given to clear a conversation. */
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
  /** Interrupts the turn that executes. */
  readonly interrupt: (sessionId: string) => void;
}) {
  const { engine, log, clock, ids, conversations, runs, interrupt } = given;
  const waiting = new Map<string, Set<() => void>>();

  const finish = async ({ conversationId, sessionId }: ClearInput): Promise<void> => {
    await log.remove(messageStream(conversationId));
    const runId = sessionId === undefined ? undefined : runOfSession(sessionId);
    if (runId !== undefined) {
      await writeAgain(async () => {
        const run = await runs.find(runId);
        if (!run || run.value.cleared) return;
        const at = new Date(clock.now()).toISOString();
        await runs.writeAll(runs.clear(run, withEvent(run.value, "closed", at, { cleared: true, completed_at: at })));
      });
    }
    await writeAgain(async () => {
      const stored = await conversations.find(conversationId);
      if (!stored?.value.clearing) return;
      const { clearing: _clearing, sessionId: _session, ...rest } = stored.value;
      await conversations.put(conversationId, { ...rest, updatedAt: new Date(clock.now()).toISOString() }, stored.version);
    });
    for (const told of waiting.get(conversationId) ?? []) told();
  };

  return {
    /** The work itself; may be done again. */
    finish,
    /** Resolves when the conversation is empty; from the call on it takes no query. False where there is none that is this user's. */
    async clear(conversationId: string, mayClear: (userId: string) => boolean, signal: AbortSignal): Promise<boolean> {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => reject(signal.reason);
      const told = waiting.get(conversationId) ?? new Set();
      waiting.set(conversationId, told.add(resolve));
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        const started = await writeAgain(async () => {
          const stored = await conversations.find(conversationId);
          if (!stored || !mayClear(stored.value.userId)) return undefined;
          const { sessionId } = stored.value;
          // It is being cleared already: wait for that.
          if (stored.value.clearing) return { sessionId };
          await engine.start(
            workKind(stored.value.depth ?? 0),
            ids.id("clear_"),
            { clear: true, conversationId, sessionId } satisfies ClearInput,
            {
              key: sessionId ?? conversationId,
              records: [conversations.write.put(conversationId, { ...stored.value, clearing: true }, stored.version)],
            },
          );
          return { sessionId };
        });
        if (!started) return false;
        if (started.sessionId !== undefined) interrupt(started.sessionId);
        await promise;
        return true;
      } finally {
        signal.removeEventListener("abort", onAbort);
        told.delete(resolve);
        if (told.size === 0) waiting.delete(conversationId);
      }
    },
  };
}
