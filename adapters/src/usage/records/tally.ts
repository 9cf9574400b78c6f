import type { ports } from "@portico/core";

/** The stored counts. */
export type Counts = Omit<ports.UsageSums, "cost" | "unpriced">;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Counts of one subject in one bucket. */
export interface Tally {
  readonly subject: ports.UsageSubject;
  readonly counts: Mutable<Counts>;
}

/** The name of the model for calls beyond the bound of a bucket. */
const OTHER = "(other)";

/** The counts of one bucket of time in this process. Its size is bounded, because callers choose models and users. */
export class Bucket<T extends Tally> {
  readonly at: number;
  readonly #most: number;
  readonly #make: (tally: Tally, at: number) => T;
  readonly #tallies = new Map<string, T>();

  constructor(at: number, most: number, make: (tally: Tally, at: number) => T) {
    this.at = at;
    this.#most = most;
    this.#make = make;
  }

  /** The counts of a subject. Beyond the bound, subjects share one per source and provider. */
  of(subject: ports.UsageSubject): T {
    const key = keyOf(subject);
    const found = this.#tallies.get(key);
    if (found) return found;
    const isFull = this.#tallies.size >= this.#most;
    const { source, provider } = subject;
    const shared: ports.UsageSubject = { source, provider, model: OTHER };
    if (isFull && key !== keyOf(shared)) return this.of(shared);
    const made = this.#make({ subject, counts: noCounts() }, this.at);
    this.#tallies.set(key, made);
    return made;
  }

  values(): Iterable<T> {
    return this.#tallies.values();
  }
}

/** Counts of nothing. */
export function noCounts(): Mutable<Counts> {
  return {
    calls: 0,
    refused: 0,
    failed: 0,
    unknown: 0,
    inputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
  };
}

/** Adds counts to others. */
export function addCounts(to: Mutable<Counts>, more: Counts): void {
  for (const name of Object.keys(to) as (keyof Counts)[]) to[name] += more[name];
}

/** A text for each subject. */
export function keyOf(subject: ports.UsageSubject): string {
  const { source, provider, model, userId, agentId, workflowId, tokenId } = subject;
  return JSON.stringify([source, provider, model, userId, agentId, workflowId, tokenId]);
}
