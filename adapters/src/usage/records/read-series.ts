import { ports } from "@portico/core";
import type { Days } from "@portico/core/kit";
import { addLatencies, type Latency, noLatency, percentilesOf } from "./latency.ts";
import type { createPriceOf } from "./prices.ts";
import { addSums, noSums, type StoredUsage, storedBetween, wantedOf } from "./read-usage.ts";

const HOUR_MS = 60 * 60_000;
/** Values that are compared. Later ones belong to the rest. */
const MOST_VALUES = 10_000;

interface Point {
  readonly sums: ReturnType<typeof noSums>;
  readonly latency: Latency;
}

/** The steps and series of a query. Throws UsageTooWide. */
export async function readSeries(
  usage: ports.Collection<StoredUsage>,
  { since, until, step, by, where, top, order = "calls" }: ports.UsageSeriesQuery,
  { days, priceOf }: { readonly days: Days; readonly priceOf: ReturnType<typeof createPriceOf> },
): Promise<Pick<ports.UsageSeriesReport, "steps" | "series">> {
  const steps = stepsOf(since, until, step, days);
  const [first] = steps;
  if (first === undefined) return { steps, series: [] };
  const isWanted = wantedOf(where);
  const stored = async function* () {
    for await (const row of storedBetween(usage, step, first, until)) if (isWanted(row)) yield row;
  };

  // Read twice, so that the memory holds the points of the chosen values alone.
  const weigh = (row: StoredUsage): Weight => {
    const { calls, inputTokens, outputTokens } = row.counts;
    return order === "calls" ? [calls, 0] : [priceOf(row.subject, row.at, row.counts).cost, inputTokens + outputTokens];
  };
  const own = await firstValues(stored(), { by, top, weigh });
  const places = new Map(steps.map((at, place) => [at, place]));
  const found = new Map<string | undefined, Map<number, Point>>(own.map((value) => [value, new Map()]));
  const rest = new Map<number, Point>();
  for await (const row of stored()) {
    const place = places.get(step === "day" ? days.startOf(row.at) : row.at);
    if (place === undefined) continue;
    const points = found.get(by && row.subject[by]) ?? rest;
    let point = points.get(place);
    if (!point) points.set(place, (point = { sums: noSums(), latency: noLatency() }));
    addSums(point.sums, { ...row.counts, ...priceOf(row.subject, row.at, row.counts) });
    if (row.latency?.durations) addLatencies(point.latency.durations, row.latency.durations);
    if (row.latency?.firstTokens) addLatencies(point.latency.firstTokens, row.latency.firstTokens);
  }
  const whole = (points: Map<number, Point>) => steps.map((_, place) => toPoint(points.get(place)));
  const series = own.map((value) => ({ value, isRest: false, points: whole(found.get(value)!) }));
  if (rest.size > 0) series.push({ value: undefined, isRest: true, points: whole(rest) });
  return { steps, series };
}

/** What values are compared by. The second number counts where the first ones are equal. */
type Weight = readonly [number, number];

async function firstValues(
  stored: AsyncIterable<StoredUsage>,
  { by, top, weigh }: Pick<ports.UsageSeriesQuery, "by" | "top"> & { readonly weigh: (row: StoredUsage) => Weight },
): Promise<readonly (string | undefined)[]> {
  const weights = new Map<string | undefined, Weight>();
  for await (const row of stored) {
    const value = by && row.subject[by];
    const before = weights.get(value);
    if (before === undefined && weights.size >= MOST_VALUES) continue;
    const [first, second] = weigh(row);
    weights.set(value, [(before?.[0] ?? 0) + first, (before?.[1] ?? 0) + second]);
  }
  return [...weights]
    .sort(([, one], [, other]) => other[0] - one[0] || other[1] - one[1])
    .slice(0, top)
    .map(([value]) => value);
}

/** When each step of a query begins. Throws UsageTooWide, and RangeError. */
export function stepsOf(since: number, until: number, step: ports.UsageSeriesQuery["step"], days: Days): readonly number[] {
  if (!Number.isFinite(since) || !Number.isFinite(until)) throw new RangeError("A query of usage has a beginning and an end");
  const length = step === "minute" ? 60_000 : HOUR_MS;
  const steps: number[] = [];
  let at = step === "day" ? days.startOf(since) : floor(since, length);
  while (at < until) {
    if (steps.length === ports.USAGE_STEPS) throw new ports.UsageTooWide("The query has too many steps");
    steps.push(at);
    at = step === "day" ? days.endOf(at) : at + length;
  }
  return steps;
}

function toPoint(point: Point | undefined): ports.UsagePoint {
  const { sums, latency } = point ?? { sums: noSums(), latency: noLatency() };
  return { sums, duration: percentilesOf(latency.durations), firstToken: percentilesOf(latency.firstTokens) };
}

function floor(ms: number, length: number): number {
  return ms - (ms % length);
}
