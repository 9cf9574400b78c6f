import { ports } from "@portico/core";

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
