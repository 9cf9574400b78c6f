import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";

/** Thrown if a job exceeded its time. The job was ended. */
export class JobOverran extends Error {
  override readonly name = "JobOverran";
}

/** Thrown if the thread of a job ended by itself. The next job gets a new thread. */
export class ThreadCrashed extends Error {
  override readonly name = "ThreadCrashed";
}

export interface JobThreadOptions<Answer> {
  /** Name of the thread, in process lists and debuggers. */
  readonly name: string;
  /** A module that sends `READY` once it listens, and then answers each message with one message. */
  readonly module: URL;
  /** The `workerData` of the module. */
  readonly given: unknown;
  /** Limit of processor time of one job, in milliseconds. */
  readonly cpuMs: number;
  /** Limit of the time from the beginning of a job to its answer, also without processor time. */
  readonly timeoutMs: number;
  /** Whether the thread must not be used again after this answer. */
  spoils(answer: Answer): boolean;
}

/** The first message of a thread's module. */
export const READY = "ready";

/** A thread that is idle for this long is ended, to free its memory. */
const IDLE_MS = 60_000;

/**
 * A thread that executes one job at a time outside of the event loop. It starts with the first job. A job that takes too long, or that is no
 * longer awaited, is ended with its thread, and the next job gets a new thread.
 */
export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions<Answer>;
  readonly #clock: ports.Clock;
  #worker: Worker | undefined;
  #isReady = false;
  #idle: ports.Timer | undefined;

  constructor(options: JobThreadOptions<Answer>, clock: ports.Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /**
   * Must not be called before the last job has ended. `began` is called when the job begins in the thread. Throws JobOverran, ThreadCrashed and
   * the signal's reason.
   */
  async run(job: Job, signal: AbortSignal, began: () => void): Promise<Answer> {
    signal.throwIfAborted();
    this.#idle?.cancel();
    try {
      const worker = (this.#worker ??= this.#start());
      worker.ref();
      if (!this.#isReady) await said(worker, signal);
      this.#isReady = true;
      const used = stopwatch(worker);
      worker.postMessage(job, []);
      began();
      const answer = (await this.#inTime(said(worker, signal), used)) as Answer;
      if (this.#options.spoils(answer)) await this.close();
      return answer;
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      this.#worker?.unref();
      if (this.#worker) this.#idle = this.#clock.after(IDLE_MS, () => void this.close());
    }
  }

  /** Ends the thread. A later job starts a new one. */
  async close(): Promise<void> {
    this.#idle?.cancel();
    const ending = this.#worker;
    this.#worker = undefined;
    await ending?.terminate();
  }

  /** On a busy machine a thread waits longer than it runs, so processor time counts. */
  #inTime<T>(work: Promise<T>, used: () => Promise<number>): Promise<T> {
    const { cpuMs, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      let hasEnded = false;
      const fail = (): void => reject(new JobOverran("The job took too long"));
      const look = async (): Promise<void> => {
        const usedMs = await used();
        if (hasEnded) return;
        if (usedMs >= cpuMs) fail();
        else late = this.#clock.after(cpuMs - usedMs, () => void look());
      };
      let late = this.#clock.after(cpuMs, () => void look());
      const last = this.#clock.after(timeoutMs, fail);
      work.then(resolve, reject).finally(() => {
        hasEnded = true;
        late.cancel();
        last.cancel();
      });
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
}

/** The next message of a thread. Rejects with the signal's reason, or with ThreadCrashed. */
function said(worker: Worker, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => settle(() => reject(signal.reason as Error));
    const onMessage = (message: unknown): void => settle(() => resolve(message));
    const onError = (cause: unknown): void => settle(() => reject(new ThreadCrashed("The thread failed", { cause })));
    const onExit = (): void => settle(() => reject(new ThreadCrashed("The thread ended")));
    const settle = (how: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
      how();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}

/**
 * Measures the processor time of a thread from now on, in milliseconds. Platforms that cannot measure it measure a fifth of the elapsed time
 * instead.
 */
function stopwatch(worker: Worker): () => Promise<number> {
  const from = performance.now();
  const begin = worker.cpuUsage?.().catch(() => undefined);
  return async () => {
    const begun = await begin;
    const since = begun && (await worker.cpuUsage(begun).catch(() => undefined));
    return since ? (since.user + since.system) / 1_000 : (performance.now() - from) / 5;
  };
}
