import { orAborted } from "@portico/core";
import type { NodePlay } from "./running.ts";

/** The signal that a node waits for. Undefined if the node's or the run's time elapses first. A parallel gate may prolong that time. */
export async function toldInTime<T>({ running, frame, left }: NodePlay, name: string): Promise<T | undefined> {
  for (;;) {
    const told = await orAborted(running.context.waitFor<T>(name, { timeoutMs: left() }), frame.signal);
    if (told !== undefined || left() <= 0) return told;
  }
}
