import type { ports } from "@portico/core";

/**
 * How many durations fell into each bucket, by the number of the bucket. Empty buckets are absent. Bucket 0 ends at 1 ms, and each one after
 * it at 2^(1/4) times the end of the one before. The bounds never change: stored counts of all processes and versions are added.
 */
export type Latencies = Record<number, number>;

/** The latencies of one subject in one bucket of time. */
export interface Latency {
  readonly durations: Latencies;
  readonly firstTokens: Latencies;
}

const BUCKETS_PER_DOUBLING = 4;
/** Everything from 70 minutes on. */
const LAST_BUCKET = 22 * BUCKETS_PER_DOUBLING;

/** Latencies of nothing. */
export function noLatency(): Latency {
  return { durations: {}, firstTokens: {} };
}

/** The bucket of a duration in milliseconds. Undefined for an invalid duration. */
export function bucketOf(ms: number | undefined): number | undefined {
  if (ms === undefined || !Number.isFinite(ms) || ms < 0) return undefined;
  return ms <= 1 ? 0 : Math.min(LAST_BUCKET, Math.ceil(Math.log2(ms) * BUCKETS_PER_DOUBLING));
}

/** Counts one duration by its bucket. */
export function addTo(to: Latencies, bucket: number | undefined): void {
  if (bucket !== undefined) to[bucket] = (to[bucket] ?? 0) + 1;
}

/** Adds stored counts to others. */
export function addLatencies(to: Latencies, more: Latencies): void {
  for (const [bucket, count] of Object.entries(more)) to[Number(bucket)] = (to[Number(bucket)] ?? 0) + count;
}

/** The median and the 95th percentile. */
export function percentilesOf(latencies: Latencies): ports.UsageLatency {
  // Whole numbers are the keys of an object in ascending order.
  const buckets = Object.entries(latencies).map(([bucket, count]) => [Number(bucket), count] as const);
  const total = buckets.reduce((sum, [, count]) => sum + count, 0);
  const at = (share: number) => {
    let left = Math.ceil(total * share);
    for (const [bucket, count] of buckets) {
      if (left <= count) return within(bucket, (left - 0.5) / count);
      left -= count;
    }
    return undefined;
  };
  return { p50: at(0.5), p95: at(0.95) };
}

/** Milliseconds, with the durations of a bucket spread over its length. */
function within(bucket: number, share: number): number {
  return bucket === 0 ? 1 : Math.round(2 ** ((bucket - 1 + share) / BUCKETS_PER_DOUBLING) * 10) / 10;
}
