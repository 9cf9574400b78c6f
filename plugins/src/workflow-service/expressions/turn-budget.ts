import { setImmediate as onNextTurn } from "node:timers";
import { orAborted } from "@portico/core";
import { EXPRESSION_TURN_MS } from "./expression-limits.ts";

/**
 * The time that evaluations may take in a row, before the event loop goes on. All evaluations of a process share it, because many short ones
 * block the event loop as one long evaluation does.
 */
interface TurnBudget {
  /** Whether an evaluation must wait for a later turn. */
  isUsed(): boolean;
  /** Call it after each evaluation. */
  use(ms: number): void;
  /**
   * Calls `work` in a later turn of the event loop that has time left, after all work that waits already. Rejects with what `work` throws,
   * and with the signal's reason; `work` is not called after that.
   */
  later<T>(work: () => T, signal: AbortSignal): Promise<T>;
}

export function createTurnBudget(limitMs: number): TurnBudget {
  // Set to zero only when work waits: so evaluations that never fill a turn cost no timer. A turn may then seem used too early, once per limit.
  let usedMs = 0;
  let isScheduled = false;
  const waiting: (() => void)[] = [];

  const isUsed = (): boolean => usedMs >= limitMs;
  const turn = (): void => {
    usedMs = 0;
    // What continues after a work runs when this returns, and finds the turn used.
    while (waiting.length > 0 && !isUsed()) waiting.shift()!();
    isScheduled = waiting.length > 0;
    if (isScheduled) onNextTurn(turn);
  };

  return {
    isUsed,
    use(ms) {
      usedMs += ms;
    },
    later<T>(work: () => T, signal: AbortSignal): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      waiting.push(() => {
        if (signal.aborted) return;
        try {
          resolve(work());
        } catch (error) {
          reject(error as Error);
        }
      });
      if (!isScheduled) onNextTurn(turn);
      isScheduled = true;
      return orAborted(promise, signal);
    },
  };
}

/** The budget of this process. */
export const turnBudget = createTurnBudget(EXPRESSION_TURN_MS);
