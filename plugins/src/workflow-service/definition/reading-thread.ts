import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";
import { READING_MS } from "./definition-limits.ts";
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
  /** Rejects where the thread runs out of memory or time, and when it is closed. */
  ask(job: ReadingJob): Promise<ReadingAnswer>;
  close(): Promise<void>;
}

export function createReadingThread(clock: ports.Clock): ReadingThread {
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
  const answerOf = async (job: ReadingJob): Promise<ReadingAnswer> => {
    if (isClosed) throw new Error("The reading of definitions is closed");
    idle?.cancel();
    const asked = (worker ??= start());
    // A process waits for what it reads, and for nothing else of the thread.
    asked.ref();
    const { promise, resolve, reject } = Promise.withResolvers<ReadingAnswer>();
    const failed = (error: Error) => reject(error);
    const ended = () => reject(new Error("The reading of definitions was stopped"));
    asked.once("message", resolve).once("error", failed).once("exit", ended);
    const late = clock.after(READING_MS, () => void stop());
    try {
      asked.postMessage(job, []);
      return await promise;
    } catch (error) {
      await stop();
      throw error;
    } finally {
      late.cancel();
      asked.off("message", resolve).off("error", failed).off("exit", ended);
      asked.unref();
      if (worker) idle = clock.after(IDLE_MS, () => void stop());
    }
  };

  return {
    ask(job) {
      const answer = turns.then(() => answerOf(job));
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
