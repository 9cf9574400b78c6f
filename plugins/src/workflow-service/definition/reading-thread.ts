import type { ports } from "@portico/core";
import { JobThread } from "@portico/core/kit";
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

/** Large documents take memory. */
const IDLE_MS = 10_000;
const MEMORY_MB = 512;

/** Reads documents in a thread, one after another. */
export interface ReadingThread {
  /** Rejects if the thread runs out of memory or time, or is closed. `slow` is called if this job takes long. */
  ask(job: ReadingJob, slow: () => void): Promise<ReadingAnswer>;
  close(): Promise<void>;
}

export function createReadingThread(clock: ports.Clock, { readingMs = READING_MS } = {}): ReadingThread {
  const module = () => new URL(import.meta.resolve("#reading-worker"));
  const options = { name: "reading", module, memoryMb: MEMORY_MB, cpuMs: readingMs, idleMs: IDLE_MS };
  const thread = new JobThread<ReadingJob, ReadingAnswer>(options, clock);
  return {
    ask: (job, slow) => thread.run(job, { slow: { afterMs: SLOW_READING_MS, tell: slow } }),
    close: () => thread.close(),
  };
}
