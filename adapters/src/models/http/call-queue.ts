import { abortError } from "../abort-error.ts";

/** One place among the calls in progress. A second call does nothing more. */
export type Release = () => void;

interface Waiting {
  enter(release: Release): void;
  leave(error: Error): void;
}

/**
 * Calls in progress, up to a limit, and a bounded queue of further calls in the order of their arrival. A call leaves the queue when
 * its signal aborts.
 */
export class CallQueue {
  readonly #limit: number;
  readonly #most: number;
  readonly #waiting = new Set<Waiting>();
  #running = 0;

  constructor(limit: number, most: number) {
    this.#limit = limit;
    this.#most = most;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** A place at once. Undefined if the call must wait. */
  tryEnter(): Release | undefined {
    return this.#running < this.#limit ? this.#take() : undefined;
  }

  /** Waits for a place. Undefined if the queue is full. Rejects with the signal's reason, or with an error of `close`. */
  wait(signal: AbortSignal): Promise<Release> | undefined {
    if (this.#waiting.size >= this.#most) return undefined;
    return new Promise((resolve, reject) => {
      const leave = (error: Error) => {
        this.#waiting.delete(waiting);
        signal.removeEventListener("abort", abort);
        reject(error);
      };
      const abort = () => leave(abortError(signal));
      const waiting: Waiting = {
        enter: (release) => {
          signal.removeEventListener("abort", abort);
          resolve(release);
        },
        leave,
      };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
    });
  }

  /** All waiting calls fail with this error. Calls in progress go on. */
  close(error: Error): void {
    for (const waiting of this.#waiting) waiting.leave(error);
  }

  #take(): Release {
    this.#running += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      const [next] = this.#waiting;
      if (!next || this.#running >= this.#limit) return;
      this.#waiting.delete(next);
      next.enter(this.#take());
    };
  }
}
