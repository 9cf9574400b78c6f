import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";
import { READING_MS, SLOW_READING_MS } from "./definition-limits.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";

/** A job for the thread: to read a text, or to find the positions of problems in it. */
export interface ReadingJob {
  readonly text: string;
  /** See `DefinitionText`. */
  readonly isStored?: boolean | undefined;
  readonly places?: readonly WantedPlace[];
}

/** The place of a problem: the value at a path, its key, or a character of its text. */
export interface WantedPlace {
  readonly of: "value" | "key" | "text";
  readonly path: Path;
  readonly offset: number;
}

export type ReadingAnswer =
  /** The document as JSON text, which is faster to transfer than the values. */
  | { readonly json: string }
  | { readonly problems: readonly DefinitionProblem[] }
  | { readonly places: readonly Pick<DefinitionProblem, "line" | "column">[] };

/** A thread that is idle for this long is stopped, to free the memory of large documents. */
const IDLE_MS = 10_000;
const MEMORY_MB = 512;

/** Reads documents in a thread, one after another. The first document starts the thread. */
export interface ReadingThread {
  /** Rejects if the thread runs out of memory or time, or is closed. `slow` is called if this job takes long. */
  ask(job: ReadingJob, slow: () => void): Promise<ReadingAnswer>;
  close(): Promise<void>;
}

export function createReadingThread(clock: ports.Clock, { readingMs = READING_MS } = {}): ReadingThread {
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
    const resourceLimits = { maxOldGenerationSizeMb: MEMORY_MB };
    const started = new Worker(new URL(import.meta.resolve("#reading-worker")), { resourceLimits });
    // Without a listener, an error of the thread would end the process. The waiting job is rejected, and the next document gets a new thread.
    started.on("error", () => {});
    started.on("exit", () => {
      if (worker === started) worker = undefined;
    });
    return started;
  };
  const answerOf = async (job: ReadingJob, slow: () => void): Promise<ReadingAnswer> => {
    if (isClosed) throw new Error("The reading of definitions is closed");
    idle?.cancel();
    const asked = (worker ??= start());
    // The thread keeps the process alive only while it reads.
    asked.ref();
    const { promise, resolve, reject } = Promise.withResolvers<ReadingAnswer>();
    const failed = (error: Error) => reject(error);
    const ended = () => reject(new Error("The reading of definitions was stopped"));
    asked.once("message", resolve).once("error", failed).once("exit", ended);
    let isAnswered = false;
    const used = stopwatch(asked);
    const told = clock.after(SLOW_READING_MS, slow);
    // A suspended or slow process has not used all the elapsed time for reading, so processor time is measured.
    const look = async (): Promise<void> => {
      const usedMs = await used();
      if (isAnswered) return;
      if (usedMs >= readingMs) await stop();
      else late = clock.after(readingMs - usedMs, () => void look());
    };
    let late = clock.after(readingMs, () => void look());
    try {
      asked.postMessage(job, []);
      return await promise;
    } catch (error) {
      await stop();
      throw error;
    } finally {
      isAnswered = true;
      told.cancel();
      late.cancel();
      asked.off("message", resolve).off("error", failed).off("exit", ended);
      asked.unref();
      if (worker) idle = clock.after(IDLE_MS, () => void stop());
    }
  };

  return {
    ask(job, slow) {
      const answer = turns.then(() => answerOf(job, slow));
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
