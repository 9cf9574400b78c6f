import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";

/** Thrown if a job exceeded its time. The job was ended. */
export class JobOverran extends Error {
  override readonly name = "JobOverran";
}

export interface JobThreadOptions<Answer> {
  /** Name of the thread, in process lists and debuggers. */
  readonly name: string;
  /** A module that sends `READY` once it listens, and then answers each message with one message. */
  readonly module: URL;
  /** The `workerData` of the module. */
  readonly given: unknown;
  /** Time limit of one job, from its own beginning. */
  readonly timeoutMs: number;
  /** Whether the thread must not be used again after this answer. */
  spoils(answer: Answer): boolean;
}

/** The first message of a thread's module. */
export const READY = "ready";

/** A thread that is idle for this long is ended, to free its memory. */
const IDLE_MS = 60_000;

/**
 * A thread that executes one job after another outside of the event loop. It starts with the first job. A job that takes too
 * long, or that is no longer awaited, is ended with its thread, and the next job gets a new thread.
 */
export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions<Answer>;
  readonly #clock: ports.Clock;
  readonly #closing = new AbortController();
  #worker: Worker | undefined;
  #isReady = false;
  #idle: ports.Timer | undefined;
  /** Settles when the last requested job has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: JobThreadOptions<Answer>, clock: ports.Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Throws JobOverran, the signal's reason, or the error that ended its thread. */
  run(job: Job, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason as Error);
    this.#idle?.cancel();
    this.#waiting++;
    const before = this.#last;
    const done = turnOf(before, signal)
      .then(() => this.#do(job, signal))
      .finally(() => {
        this.#waiting--;
        if (this.#waiting === 0) this.#rest();
      });
    // A job that left the queue must not let later jobs overtake earlier ones.
    this.#last = Promise.allSettled([before, done]);
    return done;
  }

  /** Also ends the running job. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The thread is closed"));
    await this.#last;
    await this.#end();
  }

  async #do(job: Job, signal: AbortSignal): Promise<Answer> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    stop.throwIfAborted();
    try {
      const worker = (this.#worker ??= this.#start());
      worker.ref();
      if (!this.#isReady) await said(worker, stop);
      this.#isReady = true;
      worker.postMessage(job, []);
      const answer = (await this.#inTime(said(worker, stop))) as Answer;
      if (this.#options.spoils(answer)) await this.#end();
      return answer;
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  #inTime<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(this.#options.timeoutMs, () => reject(new JobOverran("The job took too long")));
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  #start(): Worker {
    const { name, module, given } = this.#options;
    // A job finds nothing of this process, and no flags that were meant for other threads.
    const worker = new Worker(module, { name, workerData: given, env: {}, argv: [], execArgv: [] });
    this.#isReady = false;
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    // Waiting callers are also told. A thread that dies while idle is replaced.
    return worker.on("error", forget).on("exit", forget);
  }

  #rest(): void {
    this.#worker?.unref();
    if (!this.#closing.signal.aborted) this.#idle = this.#clock.after(IDLE_MS, () => void this.#end());
  }

  async #end(): Promise<void> {
    this.#idle?.cancel();
    const ending = this.#worker;
    this.#worker = undefined;
    await ending?.terminate();
  }
}

/** The next message of a thread. Rejects with the signal's reason, or with the error that ended the thread. */
function said(worker: Worker, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => settle(() => reject(signal.reason as Error));
    const onMessage = (message: unknown): void => settle(() => resolve(message));
    const onError = (error: unknown): void => settle(() => reject(error as Error));
    const onExit = (): void => settle(() => reject(new Error("The thread ended")));
    const settle = (how: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      how();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}

/** Resolves when `before` has settled. Rejects with the signal's reason. */
function turnOf(before: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    void before.finally(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
  });
}
