import type { Frame, Running } from "./running.ts";

/**
 * Whether the graph of a frame ended while nodes of it still ran, so that they end now, too. False if the run is stopped or parked: a later
 * execution continues its nodes. A run can also be parked while its nodes end, because the engine sees only their waits.
 */
export function isWoundUp({ context }: Pick<Running, "context">, { signal }: Pick<Frame, "signal">): boolean {
  return signal.aborted && !(context.signal.aborted && signal.reason === context.signal.reason);
}
