import { Worker } from "node:worker_threads";
import { orAborted } from "./clock.ts";
import type { Clock, Timer } from "../ports/clock.ts";

/** Thrown if a job exceeded its time. The job was ended. */
export class JobOverran extends Error {
  override readonly name = "JobOverran";
}

/** Thrown if the thread of a job ended by itself. The next job gets a new thread. */
export class ThreadCrashed extends Error {
  override readonly name: string = "ThreadCrashed";
}

/** Thrown if a job exceeded its memory. The next job gets a new thread. */
export class JobOutOfMemory extends ThreadCrashed {
  override readonly name = "JobOutOfMemory";
}

/** Options of `JobThread`. */
export interface JobThreadOptions<Answer> {
  /** Name of the thread, in process lists and debuggers. */
  readonly name: string;
  /** A module that calls `listenForJobs`. Found when a thread starts: bundles of other packages lack it, and often need no thread. */
  readonly module: () => URL;
  /** The `workerData` of the module. */
  readonly given?: unknown;
  /** Limit of processor time of one job, in milliseconds. Default: none. */
  readonly cpuMs?: number | undefined;
  /** Limit of the time from the beginning of a job to its answer, also without processor time, in milliseconds. Default: none. */
  readonly timeoutMs?: number | undefined;
  /** Limit of JavaScript's memory of the thread, in mebibytes. Default: that of Node.js. */
  readonly memoryMb?: number | undefined;
  /** A thread that is idle for this long is ended, to free its memory, in milliseconds. Default: 60,000. */
  readonly idleMs?: number | undefined;
  /** Whether the thread must not be used again after this answer. */
  spoils?(answer: Answer): boolean;
}

/** How one job runs. */
export interface JobRun {
  /** Ends the job, and its thread. */
  readonly signal?: AbortSignal | undefined;
  /** Called once if the job takes longer than `afterMs`. */
  readonly slow?: { readonly afterMs: number; tell(): void } | undefined;
  /** Buffers of the job that move to the thread. */
  readonly transfer?: readonly ArrayBuffer[] | undefined;
}

/** The first message of a thread's module. */
export const READY = "ready";

const IDLE_MS = 60_000;

/**
 * A thread that executes jobs outside of the event loop, one after another. It starts with the first job. A job that takes too long, or whose
 * signal aborts, is ended with its thread, and the next job gets a new thread. The thread keeps the process alive only while it works.
 */
export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions<Answer>;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #worker: Worker | undefined;
  #isReady = false;
  #idle: Timer | undefined;
  #turns: Promise<unknown> = Promise.resolve();

  constructor(options: JobThreadOptions<Answer>, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Throws JobOverran, ThreadCrashed, JobOutOfMemory and the signal's reason. A job whose signal aborts before its turn does not begin. */
  run(job: Job, { signal, slow, transfer }: JobRun = {}): Promise<Answer> {
    const stop = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal;
    const answer = this.#turns.then(() => this.#run(job, { signal: stop, slow, transfer }));
    this.#turns = answer.catch(() => {});
    return orAborted(answer, stop);
  }

  /** Ends the thread, and its jobs with an error. Resolves when both have ended. */
  async close(): Promise<void> {
    this.#closing.abort(new ThreadCrashed("The thread is closed"));
    await this.#end();
    await this.#turns;
  }

  async #run(job: Job, { signal, slow, transfer = [] }: JobRun & { readonly signal: AbortSignal }): Promise<Answer> {
    signal.throwIfAborted();
    this.#idle?.cancel();
    let told: Timer | undefined;
    try {
      const worker = (this.#worker ??= this.#start());
      worker.ref();
      if (!this.#isReady) await said(worker, signal);
      this.#isReady = true;
      const used = stopwatch(worker);
      const answer = said(worker, signal);
      answer.catch(() => {});
      worker.postMessage(job, [...transfer]);
      told = slow && this.#clock.after(slow.afterMs, () => slow.tell());
      const given = (await this.#inTime(answer, used)) as Answer;
      if (this.#options.spoils?.(given)) await this.#end();
      return given;
    } catch (error) {
      await this.#end();
      throw error;
    } finally {
      told?.cancel();
      this.#worker?.unref();
      if (this.#worker) this.#idle = this.#clock.after(this.#options.idleMs ?? IDLE_MS, () => void this.#end());
    }
  }

  async #end(): Promise<void> {
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
      const fail = (what: string): void => reject(new JobOverran(`The job took too much ${what}`));
      const look = async (limitMs: number): Promise<void> => {
        const usedMs = await used();
        if (hasEnded) return;
        if (usedMs >= limitMs) fail("processor time");
        else late = this.#clock.after(limitMs - usedMs, () => void look(limitMs));
      };
      let late = cpuMs === undefined ? undefined : this.#clock.after(cpuMs, () => void look(cpuMs));
      const last = timeoutMs === undefined ? undefined : this.#clock.after(timeoutMs, () => fail("time"));
      work.then(resolve, reject).finally(() => {
        hasEnded = true;
        late?.cancel();
        last?.cancel();
      });
    });
  }

  #start(): Worker {
    const { name, module, given, memoryMb } = this.#options;
    const limits = memoryMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: memoryMb } };
    // A job finds nothing of this process, and no flags that were meant for other threads.
    const worker = new Worker(module(), { name, workerData: given, env: {}, argv: [], execArgv: [], ...limits });
    this.#isReady = false;
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    // Waiting callers are also told. A thread that dies while idle is replaced. Without a listener, its error would end the process.
    return worker.on("error", forget).on("exit", forget);
  }
}

/** The next message of a thread. Rejects with the signal's reason, with ThreadCrashed or JobOutOfMemory. */
function said(worker: Worker, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => settle(() => reject(signal.reason as Error));
    const onMessage = (message: unknown): void => settle(() => resolve(message));
    const onError = (cause: unknown): void => settle(() => reject(crashOf(cause)));
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

function crashOf(cause: unknown): ThreadCrashed {
  const isMemory = (cause as { readonly code?: string } | undefined)?.code === "ERR_WORKER_OUT_OF_MEMORY";
  return isMemory
    ? new JobOutOfMemory("The job took too much memory", { cause })
    : new ThreadCrashed("The thread failed", { cause });
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
