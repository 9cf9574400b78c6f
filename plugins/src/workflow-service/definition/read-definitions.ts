import type { ports, Scope } from "@portico/core";
import { JobThread } from "@portico/core/kit";
import { READ_HERE_CHARACTERS, SLOW_READING_MS, READING_MS } from "./definition-limits.ts";
import { type DefinitionProblem, type Path, toJsonPath } from "./definition-problem.ts";
import {
  compileSource,
  type DefinitionText,
  inOrder,
  type LoadedDefinition,
  loadDefinition,
  type LoadingWith,
} from "./load-definition.ts";
import { type Source, readSource } from "./read-source.ts";

/** Loads a definition as `loadDefinition` does. Never rejects. */
export type ReadDefinition = (document: DefinitionText) => Promise<LoadedDefinition>;

interface ReadingNeeds {
  readonly clock: ports.Clock;
  /** The log names documents that take long, because a start waits for them. */
  readonly log: Pick<ports.Log, "warn">;
}

/** Loads definitions of any size. Long texts are parsed in a thread, so that they do not block the event loop. */
export function readDefinitions(loading: LoadingWith, { clock, log }: ReadingNeeds, scope: Scope): ReadDefinition {
  const thread = createReadingThread(clock);
  scope.onClose(() => thread.close());
  return async (document) => {
    if (document.text.length <= READ_HERE_CHARACTERS) return loadDefinition(document, loading);
    try {
      const slow = () =>
        log.warn("A workflow definition takes long to read", { definition: document.name, longerThanMs: SLOW_READING_MS });
      return await loadBeside((job) => thread.ask(job, slow), document, loading);
    } catch {
      // Stored texts are parsed here if the thread fails or this service closes, because their runs would end as unusable otherwise. Such a
      // text was read before, so reading it is not expensive.
      if (document.isStored) return loadDefinition(document, loading);
      const message = "The document takes too much time or memory to read";
      return { problems: [{ line: 1, column: 1, path: "$", message }] };
    }
  };
}

/** Reads the text of a stored definition as JSON. Undefined if it cannot be read. Never rejects. */
export type ReadWritten = (text: string) => Promise<unknown>;

/** Reads texts of any size. Long texts are parsed in a thread, so that they do not block the event loop. */
export function readWritten(clock: ports.Clock, scope: Scope): ReadWritten {
  const thread = createReadingThread(clock);
  scope.onClose(() => thread.close());
  return async (text) => {
    if (text.length <= READ_HERE_CHARACTERS) {
      const read = readSource(text, { isStored: true });
      return "source" in read ? read.source.value : undefined;
    }
    const answer = await thread.ask({ text, isStored: true }, () => {}).catch(() => undefined);
    return answer && "json" in answer ? (JSON.parse(answer.json) as unknown) : undefined;
  };
}

/** A job for the thread: to read a text, or to find the positions of problems in it. */
export interface ReadingJob {
  readonly text: string;
  /** See `DefinitionText`. */
  readonly isStored?: boolean | undefined;
  readonly locations?: readonly WantedLocation[];
}

/** The location of a problem: the value at a path, its key, or a character of its text. */
interface WantedLocation {
  readonly of: "value" | "key" | "text";
  readonly path: Path;
  readonly offset: number;
}

export type ReadingAnswer =
  /** The document as JSON text, which is faster to transfer than the values. */
  | { readonly json: string }
  | { readonly problems: readonly DefinitionProblem[] }
  | { readonly locations: readonly Pick<DefinitionProblem, "line" | "column">[] };

/** Large documents take memory. */
const IDLE_MS = 10_000;

const MEMORY_MB = 512;

/** Reads documents in a thread, one after another. */
interface ReadingThread {
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

async function loadBeside(
  ask: (job: ReadingJob) => Promise<ReadingAnswer>,
  document: DefinitionText,
  loading: LoadingWith,
): Promise<LoadedDefinition> {
  const { text, isStored } = document;
  const read = await ask({ text, isStored });
  if ("problems" in read) return { problems: read.problems };
  if (!("json" in read)) throw new TypeError("The thread answered something else");
  const source = new UnlocatedSource(JSON.parse(read.json));
  const { definition, problems, id } = compileSource(document, source, loading);
  if (definition) return { definition };
  const located = await ask({ text, isStored, locations: problems.map((problem) => source.locationOf(problem)) });
  if (!("locations" in located)) throw new TypeError("The thread answered something else");
  return { problems: inOrder(problems.map((problem, index) => ({ ...problem, ...located.locations[index]! }))), id };
}

/** Records the paths of problems. The thread finds their positions in the text. */
class UnlocatedSource implements Source {
  readonly value: unknown;
  readonly #locations = new Map<DefinitionProblem, WantedLocation>();

  constructor(value: unknown) {
    this.value = value;
  }

  locationOf(problem: DefinitionProblem): WantedLocation {
    return this.#locations.get(problem)!;
  }

  problem(path: Path, message: string): DefinitionProblem {
    return this.#note({ of: "value", path, offset: 0 }, message);
  }

  keyProblem(path: Path, message: string): DefinitionProblem {
    return this.#note({ of: "key", path, offset: 0 }, message);
  }

  textProblem(path: Path, offset: number, message: string): DefinitionProblem {
    return this.#note({ of: "text", path, offset }, message);
  }

  #note(location: WantedLocation, message: string): DefinitionProblem {
    const problem = { line: 1, column: 1, path: toJsonPath(location.path), message };
    this.#locations.set(problem, location);
    return problem;
  }
}
