import type { ports } from "@portico/core";

/** Start and extent of a reading. */
export interface ReadPlan {
  readonly from: number | undefined;
  readonly limit: number;
  readonly backwards: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The port's options with their defaults. Throws RangeError for invalid sequence numbers. */
export function toReadPlan({ from, limit, backwards = false, signal }: ports.ReadOptions = {}): ReadPlan {
  if (from !== undefined && (!Number.isSafeInteger(from) || from < 1)) throw new RangeError("`from` is a whole number from 1");
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 0))
    throw new RangeError("`limit` is a whole number from 0");
  return { from, limit: limit ?? Number.POSITIVE_INFINITY, backwards, signal };
}
