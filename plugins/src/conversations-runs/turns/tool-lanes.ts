import { orAborted } from "@portico/core";

/** Calls of a turn that have to wait for each other: those of one lane run one after another, in the order in which they came. */
export class ToolLanes {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs when all earlier calls of the lane have ended, successfully or not. Rejects with the signal's reason, also while it waits. */
  run<T>(lane: string | undefined, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    if (lane === undefined) return run();
    const before = this.#last.get(lane);
    const running = (async () => {
      await before;
      signal.throwIfAborted();
      return run();
    })();
    this.#last.set(
      lane,
      running.catch(() => {}),
    );
    return orAborted(running, signal);
  }
}
