import { isStoreAway, orAborted, type ports } from "@portico/core";
import { LOOK_AGAIN_MS } from "./limits.ts";
import type { SharedPorts } from "@portico/core/kit";

/** Waits for one thing that may happen in any process. */
export interface Waiting<T> {
  /**
   * Resolves with a result from this process, or with what `look` finds in stores. In an instance with one process, `look` is not called.
   * In an instance with several processes, it is called at once, after messages of other processes, and every few seconds, because messages
   * may be lost. Rejects with the signal's reason, with an error from this process, and with errors of `look`, except while its store is
   * unavailable.
   */
  until(look: () => Promise<T | undefined>, signal: AbortSignal): Promise<T>;
  /** Stop listening: on every path. */
  close(): void;
}

/** Waiting callers are told at once of events in this process, and find events of other processes in stores. */
export class Hints {
  readonly #shared: SharedPorts;
  readonly #clock: ports.Clock;
  readonly #waiting = new Map<string, Set<PromiseWithResolvers<unknown>>>();

  constructor(shared: SharedPorts, clock: ports.Clock) {
    this.#shared = shared;
    this.#clock = clock;
  }

  /** The event happened: waiting callers in this process get this result. */
  notify(topic: string, result: unknown): void {
    for (const each of this.#waiting.get(topic) ?? []) each.resolve(result);
    this.#shared.bus.publish(topic, null, { toOthers: true });
  }

  /** It failed, and does not happen now. Others learn it when they give up. */
  fail(topic: string, error: unknown): void {
    for (const each of this.#waiting.get(topic) ?? []) each.reject(error);
  }

  listen<T>(topic: string): Waiting<T> {
    const awaited = Promise.withResolvers<T>();
    // It may fail before a caller waits for it.
    awaited.promise.catch(() => {});
    const waiting = this.#waiting.get(topic) ?? new Set();
    this.#waiting.set(topic, waiting.add(awaited as PromiseWithResolvers<unknown>));
    const close = (): void => {
      waiting.delete(awaited as PromiseWithResolvers<unknown>);
      if (waiting.size === 0) this.#waiting.delete(topic);
    };
    return {
      close,
      until: (look, signal) =>
        this.#shared.isShared ? this.#untilFound(topic, awaited, look, signal) : orAborted(awaited.promise, signal),
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
    const subscription = this.#shared.bus.subscribe(topic, { received: () => void lookNow(), missed: () => void lookNow() });
    let timer: ports.Timer | undefined;
    const lookAgain = (): void => {
      void lookNow();
      timer = this.#clock.after(LOOK_AGAIN_MS, lookAgain);
    };
    // Events before then were not reported.
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
