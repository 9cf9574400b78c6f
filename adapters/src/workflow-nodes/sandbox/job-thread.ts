import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";

/** Thrown where a job took longer than it may: whatever it did is over. */
export class JobOverran extends Error {
  override readonly name = "JobOverran";
}

export interface JobThreadOptions<Answer> {
  /** Of the thread, in lists of processes and in debuggers. */
  readonly name: string;
  /** A module that says `READY` once it listens, and then answers each message with one. */
  readonly module: URL;
  /** What the module finds as `workerData`. */
  readonly given: unknown;
  /** What one job may take, counted from its own begin. */
  readonly timeoutMs: number;
  /** Whether the thread is not to be used again after this answer. */
  spoils(answer: Answer): boolean;
}

/** What a thread's module says first. */
export const READY = "ready";

/** A thread that nobody needs for this long goes away, with its memory. */
const IDLE_MS = 60_000;

/**
 * A thread that does one job after another beside the event loop. It begins with the first job; one that takes too long, or that nobody
 * waits for any longer, is ended with its thread, and the next job gets a new one.
 */
export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions<Answer>;
  readonly #clock: ports.Clock;
  readonly #closing = new AbortController();
  #worker: Worker | undefined;
  #isReady = false;
  #idle: ports.Timer | undefined;
  /** Settles when the last job that was asked for is over. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: JobThreadOptions<Answer>, clock: ports.Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Throws JobOverran, the signal's reason, or what its thread died of. */
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
    // One that left the queue lets nobody pass who stood behind the others.
    this.#last = Promise.allSettled([before, done]);
    return done;
  }

  /** Ends the job that is being done, too. */
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
    // Nothing of this process's that a job could find, and no flags that were meant for others.
    const worker = new Worker(module, { name, workerData: given, env: {}, argv: [], execArgv: [] });
    this.#isReady = false;
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    // Whoever waits hears of it as well; one that dies while nobody does is replaced.
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

/** The next thing that a thread says. Rejects with the signal's reason, or with what the thread died of. */
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

/** Resolves when `before` is over; rejects with the signal's reason. */
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
