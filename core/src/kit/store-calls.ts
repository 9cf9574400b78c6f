import { EngineUnavailable, WorkCancelled } from "../ports/engine.ts";
import { LogUnavailable } from "../ports/log.ts";
import { type Collection, type Page, type Query, RecordConflict, RecordsUnavailable, type Stored } from "../ports/records.ts";
import { SealingUnavailable } from "../ports/sealing.ts";
import type { Clock } from "../ports/clock.ts";

/** Whether a store could not be reached. */
export function isStoreUnavailable(error: unknown): boolean {
  return (
    error instanceof LogUnavailable ||
    error instanceof RecordsUnavailable ||
    error instanceof EngineUnavailable ||
    error instanceof SealingUnavailable
  );
}

/** Whether a retry of a write can succeed a little later: the store is unavailable, or another caller wrote in between. */
export function isStoreAway(error: unknown): boolean {
  return isStoreUnavailable(error) || error instanceof RecordConflict;
}

/** How durable work retries a call to an unavailable store. */
export interface StoreRetry {
  readonly clock: Clock;
  /** The work's signal. Once it has aborted, the call is not repeated: the engine takes the work up again at the next start. */
  readonly signal: AbortSignal;
  /**
   * Total attempts for cancelled work; default 0. Cancelled work is not taken up again, and its signal does not tell when the
   * process stops. If these attempts fail, the area completes the write at its next start.
   */
  readonly cancelledAttempts?: number | undefined;
}

const PAUSES_MS = [100, 1000];
const LONGEST_PAUSE_MS = 5000;

/**
 * Calls a store until it answers, because an unavailable store must not cause the loss of accepted work. Errors that the store's
 * availability did not cause (`isStoreAway`) are thrown at once. After the signal has aborted, all errors of the store are
 * thrown.
 */
export async function retryWhileStoreAway<T>(
  { clock, signal, cancelledAttempts = 0 }: StoreRetry,
  call: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      const isCancelled = cancelledAttempts > 0 && signal.reason instanceof WorkCancelled;
      if (!isStoreAway(error) || (signal.aborted && !(isCancelled && attempt < cancelledAttempts))) throw error;
      const pause = PAUSES_MS[attempt] ?? LONGEST_PAUSE_MS;
      if (isCancelled) await clock.sleep(pause);
      else await clock.sleep(pause, signal).catch(() => {});
    }
  }
}

const ATTEMPTS = 50;

/**
 * Optimistic locking over the port `records`. `attempt` reads, decides and writes with the versions that it read. It is repeated
 * while another caller writes in between. Throws the errors of `attempt`, and the last RecordConflict if every attempt
 * conflicted.
 */
export async function writeAgain<T>(attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RecordConflict) || count >= ATTEMPTS) throw error;
    }
  }
}

/** For a write that may lose to another one: undefined for a RecordConflict. Throws every other error. */
export function undefinedAtConflict(error: unknown): undefined {
  if (!(error instanceof RecordConflict)) throw error;
}

/** Records of one page, where the caller names no limit. */
const PAGE = 100;

/** Everything that a query finds, in pages of its `limit` (default 100), while records are added and removed. Throws RecordsUnavailable. */
export async function* readPages<T extends object>(
  collection: Collection<T>,
  { limit = PAGE, ...query }: Omit<Query, "after">,
): AsyncGenerator<readonly Stored<T>[], void> {
  let after: string | undefined;
  do {
    const page: Page<T> = await collection.query({ ...query, limit, ...(after !== undefined && { after }) });
    yield page.items;
    after = page.next;
  } while (after !== undefined);
}

/**
 * Lets callers that ask for the same key in one turn of the event loop share one read. Under load many requests with one credential arrive in one
 * turn. The read begins after that turn, so no caller gets a result from before its question. This also holds for changes by other processes.
 *
 * @param read - reads what stands under the key; its rejection reaches every caller that shares it.
 */
export function readOncePerTurn<T>(read: (key: string) => Promise<T>): (key: string) => Promise<T> {
  const ofThisTurn = new Map<string, Promise<T>>();
  const readAfterTurn = async (key: string): Promise<T> => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    ofThisTurn.delete(key);
    return read(key);
  };
  return (key) => {
    const reading = ofThisTurn.get(key) ?? readAfterTurn(key);
    ofThisTurn.set(key, reading);
    return reading;
  };
}
