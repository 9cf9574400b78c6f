import { ports } from "@portico/core";
import type { NodePlay } from "./running.ts";

/** Whether a node's own end is why it waits no more, and not that its process stops or gives memory back. */
export function isGivenUp({ running, frame }: NodePlay, error: unknown): boolean {
  const { signal } = running.context;
  if (signal.aborted) return signal.reason instanceof ports.WorkCancelled;
  return frame.signal.aborted || (error instanceof ports.NodeFailed && error.code === "timeout");
}
