import type { Clock } from "../ports/clock.ts";
import { JobThread, type JobThreadOptions } from "./job-thread.ts";

/** Thrown if a job waited too long for a thread. It did not begin. */
export class PoolBusy extends Error {
  override readonly name = "PoolBusy";
}

/** Options of `JobPool`. */
export interface JobPoolOptions<Answer> extends JobThreadOptions<Answer> {
  /** Maximum number of threads, apart from those with slow jobs. */
  readonly threads: number;
  /** How long a job may wait for a thread, in milliseconds. */
  readonly waitMs: number;
}

/** A job that has executed for this long is slow: another job may begin beside it. */
const SLOW_MS = 100;
/** Maximum number of slow jobs beside which others begin. */
const SLOW_JOBS = 8;

/**
 * Threads that execute jobs outside of the event loop, in the order of their arrival. Threads start when jobs need them, and end when they are
 * idle. Slow jobs do not delay short ones.
 */
export class JobPool<Job, Answer> {
  readonly #options: JobPoolOptions<Answer>;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #threads = new Set<JobThread<Job, Answer>>();
  /** The one that was used last is used first, so that the others can end. */
  readonly #idle: JobThread<Job, Answer>[] = [];
  readonly #running = new Set<Promise<unknown>>();
  #begun = 0;
  #slow = 0;
  /** Jobs that wait for a thread. */
  readonly #waiting = new Set<() => void>();

  constructor(options: JobPoolOptions<Answer>, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Throws PoolBusy, JobOverran, ThreadCrashed and the signal's reason. */
  run(job: Job, signal: AbortSignal): Promise<Answer> {
    const running = this.#run(job, AbortSignal.any([signal, this.#closing.signal]));
    const ended = running.catch(() => {}).finally(() => this.#running.delete(ended));
    this.#running.add(ended);
    return running;
  }

  /** Also ends the running jobs. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The threads are closed"));
    await Promise.all(this.#running);
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  async #run(job: Job, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    await this.#begin(signal);
    const thread = this.#idle.pop() ?? this.#open();
    let isSlow = false;
    const tell = (): void => {
      isSlow = true;
      this.#slow++;
      this.#beginWaiting();
    };
    try {
      return await thread.run(job, { signal, slow: { afterMs: SLOW_MS, tell } });
    } finally {
      if (isSlow) this.#slow--;
      this.#begun--;
      this.#idle.push(thread);
      this.#beginWaiting();
    }
  }

  #open(): JobThread<Job, Answer> {
    const thread = new JobThread<Job, Answer>(this.#options, this.#clock);
    this.#threads.add(thread);
    return thread;
  }

  /** Resolves when a job may begin. */
  #begin(signal: AbortSignal): Promise<void> {
    if (this.#hasRoom()) {
      this.#begun++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        this.#waiting.delete(begin);
        signal.removeEventListener("abort", leave);
        timer.cancel();
        how();
      };
      const leave = (): void => settle(() => reject(signal.reason as Error));
      const begin = (): void =>
        settle(() => {
          this.#begun++;
          resolve();
        });
      const timer = this.#clock.after(this.#options.waitMs, () => settle(() => reject(new PoolBusy("All threads are busy"))));
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(begin);
    });
  }

  #beginWaiting(): void {
    for (const begin of this.#waiting) {
      if (!this.#hasRoom()) return;
      begin();
    }
  }

  #hasRoom(): boolean {
    return this.#begun - Math.min(this.#slow, SLOW_JOBS) < this.#options.threads;
  }
}
