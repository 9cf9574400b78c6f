import type { ports } from "@portico/core";
import type { KindRule } from "./journal.ts";
import { checkName } from "./work-text.ts";

/** The port's defaults. */
const CONCURRENCY_PER_KEY = 1;
const CONCURRENCY = 64;

/** A kind of work as it was defined. */
export interface Kind extends KindRule {
  readonly concurrency: number;
  work(context: ports.WorkContext, input: object): Promise<unknown>;
  closed(id: string, input: object): Promise<void>;
}

/** Check a definition. Throws TypeError for a name or a number that is none. */
export function createKind<I extends object>(
  kind: string,
  work: (context: ports.WorkContext, input: I) => Promise<unknown>,
  { onInterrupted, closed, concurrencyPerKey = CONCURRENCY_PER_KEY, concurrency = CONCURRENCY }: ports.WorkOptions<I>,
): Kind {
  checkName("A kind of work", kind);
  for (const limit of [concurrencyPerKey, concurrency]) {
    if (!Number.isSafeInteger(limit) || limit < 1)
      throw new TypeError(`The concurrency of ${kind} must be a whole number from 1`);
  }
  return {
    kind,
    onInterrupted,
    keyLimit: concurrencyPerKey,
    concurrency,
    // What is accepted for a kind is what its callers gave it: its input type is their promise.
    work: (context, input) => work(context, input as I),
    closed: async (id, input) => closed?.(id, input as I),
  };
}
