import { ports } from "@portico/core";
import { isWoundUp } from "./is-wound-up.ts";
import type { NodePlay } from "./running.ts";

/** Whether a node stopped waiting because the node itself ends. False if its process stops, or parks the run to free memory. */
export function isGivenUp({ running, frame }: NodePlay, error: unknown): boolean {
  const { signal } = running.context;
  if (signal.reason instanceof ports.WorkCancelled || isWoundUp(running, frame)) return true;
  return !signal.aborted && error instanceof ports.NodeFailed && error.code === "timeout";
}
