import { ports } from "@portico/core";
import type { Running } from "./running.ts";

const PAUSES_MS = [100, 1000];
const LONGEST_PAUSE_MS = 5000;

/**
 * Again and again while a store is away: a run is not to fail because of that. Throws what is no store's fault, and what the store says when the
 * work's own signal has aborted: whoever resumes it comes to the same place again.
 */
export async function insist<T>({ context, world }: Pick<Running, "context" | "world">, write: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      if (!isStoreAway(error) || context.signal.aborted) throw error;
      await world.clock.sleep(PAUSES_MS[attempt] ?? LONGEST_PAUSE_MS, context.signal).catch(() => {});
    }
  }
}

function isStoreAway(error: unknown): boolean {
  return (
    error instanceof ports.LogUnavailable ||
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.EngineUnavailable ||
    error instanceof ports.RecordConflict
  );
}
