import type { ports } from "@portico/core";
import type { KindRule } from "./journal.ts";
import { checkName } from "./work-text.ts";

/** The port's defaults. */
const CONCURRENCY_PER_KEY = 1;
const CONCURRENCY = 64;

/** A defined kind of work. */
export interface Kind extends KindRule {
  readonly concurrency: number;
  readonly begins: "here" | "anywhere";
  readonly beginsWithBatch: boolean;
  work(context: ports.WorkContext, input: object): Promise<unknown>;
  closed(id: string, input: object): Promise<void>;
}

/** Check a definition. Throws TypeError for an invalid name or number. */
export function createKind<I extends object>(
  kind: string,
  work: (context: ports.WorkContext, input: I) => Promise<unknown>,
  {
    onInterrupted,
    closed,
    concurrencyPerKey = CONCURRENCY_PER_KEY,
    concurrency = CONCURRENCY,
    begins = "here",
    beginsWithBatch = false,
  }: ports.WorkOptions<I>,
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
    begins,
    beginsWithBatch,
    // The input of accepted work is the one that its caller gave. The caller guarantees its type.
    work: (context, input) => work(context, input as I),
    closed: async (id, input) => closed?.(id, input as I),
  };
}
