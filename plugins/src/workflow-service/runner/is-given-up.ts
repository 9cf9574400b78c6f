import { ports } from "@portico/core";
import type { NodePlay } from "./running.ts";

/** Whether a node stopped waiting because the node itself ends. False if its process stops, or parks the run to free memory. */
export function isGivenUp({ running, frame }: NodePlay, error: unknown): boolean {
  const { signal } = running.context;
  if (signal.aborted) return signal.reason instanceof ports.WorkCancelled;
  return frame.signal.aborted || (error instanceof ports.NodeFailed && error.code === "timeout");
}
