import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";

export interface JobThreadOptions {
  /** A module that answers each message with one message. */
  readonly module: URL;
  readonly memoryMb: number;
  /** Maximum processor time of one job, in milliseconds. */
  readonly limitMs: number;
  /** The thread ends when it is idle for this long, to free the memory of large jobs. */
  readonly idleMs: number;
}

/** A long job, of which the log tells. */
export interface SlowJob {
  readonly afterMs: number;
  tell(): void;
}

/** Thrown if a job exceeded its memory or processor time. */
export class JobTooLarge extends Error {
  override readonly name = "JobTooLarge";
}

/** Executes jobs in a thread, one after another. The first job starts the thread. */
export interface JobThread<Job, Answer> {
  /**
   * Rejects with JobTooLarge, or with another error if the thread crashes or is closed. A job whose signal aborts before its turn does not
   * begin, and rejects with the signal's reason.
   */
  ask(job: Job, about?: { readonly slow?: SlowJob; readonly signal?: AbortSignal }): Promise<Answer>;
  close(): Promise<void>;
}

export function createJobThread<Job, Answer>(
  { module, memoryMb, limitMs, idleMs }: JobThreadOptions,
  clock: ports.Clock,
): JobThread<Job, Answer> {
  let worker: Worker | undefined;
  let idle: ports.Timer | undefined;
  let isClosed = false;
  let turns: Promise<unknown> = Promise.resolve();

  const stop = async (): Promise<void> => {
    idle?.cancel();
    const stopping = worker;
    worker = undefined;
    await stopping?.terminate();
  };
  const start = (): Worker => {
    const started = new Worker(module, { resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    // Without a listener, an error of the thread would end the process. The waiting job is rejected, and the next job gets a new thread.
    started.on("error", () => {});
    started.on("exit", () => {
      if (worker === started) worker = undefined;
    });
    return started;
  };
  const answerOf = async (job: Job, slow: SlowJob | undefined): Promise<Answer> => {
    if (isClosed) throw new Error("The thread is closed");
    idle?.cancel();
    const asked = (worker ??= start());
    // The thread keeps the process alive only while it works.
    asked.ref();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const failed = (cause: Error) =>
      reject(isOutOfMemory(cause) ? new JobTooLarge("The job took too much memory", { cause }) : cause);
    const ended = () => reject(new Error("The thread was stopped"));
    asked.once("message", resolve).once("error", failed).once("exit", ended);
    let isAnswered = false;
    const used = stopwatch(asked);
    const told = slow && clock.after(slow.afterMs, () => slow.tell());
    // A suspended or slow process has not used all the elapsed time for the job, so processor time is measured.
    const look = async (): Promise<void> => {
      const usedMs = await used();
      if (isAnswered) return;
      if (usedMs < limitMs) late = clock.after(limitMs - usedMs, () => void look());
      else reject(new JobTooLarge("The job took too much processor time"));
    };
    let late = clock.after(limitMs, () => void look());
    try {
      asked.postMessage(job, []);
      return await promise;
    } catch (error) {
      await stop();
      throw error;
    } finally {
      isAnswered = true;
      told?.cancel();
      late.cancel();
      asked.off("message", resolve).off("error", failed).off("exit", ended);
      asked.unref();
      if (worker) idle = clock.after(idleMs, () => void stop());
    }
  };

  return {
    ask(job, { slow, signal } = {}) {
      const answer = turns.then(() => {
        signal?.throwIfAborted();
        return answerOf(job, slow);
      });
      turns = answer.catch(() => {});
      return answer;
    },
    async close() {
      isClosed = true;
      await stop();
      await turns;
    },
  };
}

function isOutOfMemory(cause: unknown): boolean {
  return (cause as { readonly code?: string }).code === "ERR_WORKER_OUT_OF_MEMORY";
}

/** Measures the processor time of a thread from now on, in milliseconds. Before Node.js 24.6 it measures the process, which is more. */
function stopwatch(worker: Worker): () => Promise<number> {
  const ofProcess = process.cpuUsage();
  // A thread has no processor time before its start or after its end.
  const ofThread = worker.cpuUsage?.().catch(() => undefined);
  return async () => {
    const since = ofThread ? await worker.cpuUsage(await ofThread).catch(() => undefined) : process.cpuUsage(ofProcess);
    return since ? (since.user + since.system) / 1000 : 0;
  };
}
