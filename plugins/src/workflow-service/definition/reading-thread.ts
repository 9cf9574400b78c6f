import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";
import { READING_MS, SLOW_READING_MS } from "./definition-limits.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";

/** What is asked of the thread: to read a text, or where in it problems stand. */
export interface ReadingJob {
  readonly text: string;
  /** As in `DefinitionText`. */
  readonly isStored?: boolean | undefined;
  readonly places?: readonly WantedPlace[];
}

/** Where a problem stands: at the value of a path, at its key, or at a character of its text. */
export interface WantedPlace {
  readonly of: "value" | "key" | "text";
  readonly path: Path;
  readonly offset: number;
}

export type ReadingAnswer =
  /** The document as JSON: quicker to hand over than its values. */
  | { readonly json: string }
  | { readonly problems: readonly DefinitionProblem[] }
  | { readonly places: readonly Pick<DefinitionProblem, "line" | "column">[] };

/** A thread that is idle for this long is stopped, to free the memory of large documents. */
const IDLE_MS = 10_000;
const MEMORY_MB = 512;

/** Reads documents beside the event loop, one after another. The thread begins with the first. */
export interface ReadingThread {
  /** Rejects where the thread runs out of memory or time, and when it is closed. `slow` is called if this job takes long. */
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
    // Without a listener it would end the process. Who waits for an answer hears of it, and the next document gets another thread.
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
    // A process waits for what it reads, and for nothing else of the thread.
    asked.ref();
    const { promise, resolve, reject } = Promise.withResolvers<ReadingAnswer>();
    const failed = (error: Error) => reject(error);
    const ended = () => reject(new Error("The reading of definitions was stopped"));
    asked.once("message", resolve).once("error", failed).once("exit", ended);
    let isAnswered = false;
    const used = stopwatch(asked);
    const told = clock.after(SLOW_READING_MS, slow);
    // A process that was suspended, or shares its processors, has not read for all of the time.
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

/** Tells how much processor time a thread has used since, in milliseconds; before Node.js 24.6 that of the process, which is more. */
function stopwatch(worker: Worker): () => Promise<number> {
  const ofProcess = process.cpuUsage();
  // A thread cannot tell before it has begun, nor after its end.
  const ofThread = worker.cpuUsage?.().catch(() => undefined);
  return async () => {
    const since = ofThread ? await worker.cpuUsage(await ofThread).catch(() => undefined) : process.cpuUsage(ofProcess);
    return since ? (since.user + since.system) / 1000 : 0;
  };
}
