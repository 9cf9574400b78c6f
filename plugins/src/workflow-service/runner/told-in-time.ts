import { orAborted } from "@portico/core";
import type { NodePlay } from "./play-attempts.ts";

/** What a node is told by a signal; undefined when its time, or the run's, is over first. A gate beside it may prolong that while it waits. */
export async function toldInTime<T>({ running, frame, left }: NodePlay, name: string): Promise<T | undefined> {
  for (;;) {
    const told = await orAborted(running.context.waitFor<T>(name, { timeoutMs: left() }), frame.signal);
    if (told !== undefined || left() <= 0) return told;
  }
}
