import { ports, writeAgain } from "@portico/core";

/** The condition that an execution still has its work (`WorkContext.held`). Undefined where no other process can have it. */
export type OwnershipCondition = ports.Write | undefined;

/** As `writeAgain`, with a condition among its writes. Throws EngineFenced when another process was given the work. */
export function writeWhileOwned<T>(
  ownership: OwnershipCondition,
  attempt: (condition: readonly ports.Write[]) => Promise<T>,
): Promise<T> {
  return writeAgain(() => whileOwned(ownership, attempt));
}

/** One write with the condition. Throws EngineFenced when another process was given the work. */
export async function whileOwned<T>(
  ownership: OwnershipCondition,
  write: (condition: readonly ports.Write[]) => Promise<T>,
): Promise<T> {
  try {
    return await write(ownership ? [ownership] : []);
  } catch (error) {
    const isLost =
      error instanceof ports.RecordConflict && error.collection === ownership?.collection && error.id === ownership.id;
    throw isLost ? new ports.EngineFenced("Another process executes the turn") : error;
  }
}

/**
 * Ends the work of a turn in the commit of the turn's end, or of its wait. `write` gets the condition for that commit. Throws EngineFenced when
 * another process was given the work.
 */
export async function endWork<T>(
  engine: ports.Engine,
  context: ports.WorkContext,
  write: (ended: ports.Write) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await context.endWith(write);
  } catch (error) {
    if (!(error instanceof ports.EngineFenced)) throw error;
    // The store may have taken an earlier attempt, and its answer was lost. Another process would have closed the turn.
    const state = (await engine.status(context.id))?.state;
    if (state !== "completed" && state !== "cancelled") throw error;
    return undefined;
  }
}
