import { isStoreAway, orAborted, type ports } from "@portico/core";
import { LOOK_AGAIN_MS } from "./limits.ts";
import type { SharedPorts } from "./shared-ports.ts";

/** Waits for one thing that may happen in any process. */
export interface Waiting<T> {
  /**
   * Resolves with what this process is told, or with what `look` finds in stores. In an instance of one process, `look` is not called. Where
   * several share it, it is called at once, when others tell something, and every few seconds, because hints may be lost. Rejects with the
   * signal's reason, with an error that this process is told, and with errors of `look` unless its store is away.
   */
  until(look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T>;
  /** Stop listening: on every path. */
  close(): void;
}

/** What waits is told at once in this process, and learns from stores what happened in others. */
export class Hints {
  readonly #shared: SharedPorts;
  readonly #clock: ports.Clock;
  readonly #waiting = new Map<string, Set<PromiseWithResolvers<unknown>>>();

  constructor(shared: SharedPorts, clock: ports.Clock) {
    this.#shared = shared;
    this.#clock = clock;
  }

  /** It happened: with this result for what waits in this process. */
  tell(topic: string, result: unknown): void {
    for (const each of this.#waiting.get(topic) ?? []) each.resolve(result);
    this.#shared.bus.publish(topic, null, { toOthers: true });
  }

  /** It failed, and does not happen now. Others learn it when they give up. */
  fail(topic: string, error: unknown): void {
    for (const each of this.#waiting.get(topic) ?? []) each.reject(error);
  }

  listen<T>(topic: string): Waiting<T> {
    const told = Promise.withResolvers<T>();
    // It may fail before somebody waits for it.
    told.promise.catch(() => {});
    const waiting = this.#waiting.get(topic) ?? new Set();
    this.#waiting.set(topic, waiting.add(told as PromiseWithResolvers<unknown>));
    const close = (): void => {
      waiting.delete(told as PromiseWithResolvers<unknown>);
      if (waiting.size === 0) this.#waiting.delete(topic);
    };
    return {
      close,
      until: (look, signal) =>
        this.#shared.isShared ? this.#untilFound(topic, told, look, signal) : orAborted(told.promise, signal),
    };
  }

  async #untilFound<T>(
    topic: string,
    { promise, resolve, reject }: PromiseWithResolvers<T>,
    look: () => Promise<T | undefined>,
    signal: AbortSignal,
  ): Promise<T> {
    const lookNow = () =>
      look().then(
        (found) => found !== undefined && resolve(found),
        (error: unknown) => isStoreAway(error) || reject(error),
      );
    const subscription = this.#shared.bus.subscribe(topic, { told: () => void lookNow(), missed: () => void lookNow() });
    let timer: ports.Timer | undefined;
    const lookAgain = (): void => {
      void lookNow();
      timer = this.#clock.after(LOOK_AGAIN_MS, lookAgain);
    };
    // What happened before then was not told.
    void subscription.active.then((isActive) => isActive && lookNow());
    lookAgain();
    try {
      return await orAborted(promise, signal);
    } finally {
      timer?.cancel();
      subscription.close();
    }
  }
}
