import type { ports } from "@portico/core";

/** A series of model calls as one list per number, which is what charts draw. */
export function toColumns({ value, isRest, points }: ports.UsageSeries, hasPrices: boolean) {
  const sums = (name: keyof ports.UsageSums) => points.map((point) => point.sums[name]);
  const latency = (name: "duration" | "firstToken", share: keyof ports.UsageLatency) =>
    points.map((point) => point[name][share] ?? null);
  return {
    ...(value !== undefined && { value }),
    isRest,
    calls: sums("calls"),
    failed: sums("failed"),
    unknown: sums("unknown"),
    inputTokens: sums("inputTokens"),
    outputTokens: sums("outputTokens"),
    ...(hasPrices && { cost: sums("cost"), unpriced: sums("unpriced") }),
    durationP50: latency("duration", "p50"),
    durationP95: latency("duration", "p95"),
    firstTokenP50: latency("firstToken", "p50"),
    firstTokenP95: latency("firstToken", "p95"),
  };
}

/** The same of ended work. */
export function toWorkColumns({ value, isRest, points }: ports.EndedWorkSeries) {
  const counts = (outcome: ports.EndedWorkOutcome) => points.map((point) => point.counts[outcome]);
  return {
    ...(value !== undefined && { value }),
    isRest,
    completed: counts("completed"),
    failed: counts("failed"),
    cancelled: counts("cancelled"),
    interrupted: counts("interrupted"),
    durationP50: points.map(({ duration }) => duration.p50 ?? null),
    durationP95: points.map(({ duration }) => duration.p95 ?? null),
  };
}
