/** Most time series of one instrument, as in the SDK of OpenTelemetry. Each costs memory, and lines at every scrape. */
const MOST = 2_000;

type Labels = Readonly<Record<string, string | number | boolean>>;

/**
 * Bounds the series of every instrument. Returns the labels under which an instrument records. New combinations beyond the bound share one
 * series, whose labels are all `other`. Names that callers invent are no labels at all: the bound is for what a plugin overlooks.
 */
export function boundSeries(): <L extends Labels>(instrument: string, labels: L) => L {
  const known = new Map<string, Set<string>>();
  return (instrument, labels) => {
    const own = known.get(instrument) ?? new Set();
    known.set(instrument, own);
    const series = JSON.stringify(labels);
    if (own.has(series)) return labels;
    if (own.size >= MOST) return Object.fromEntries(Object.keys(labels).map((name) => [name, "other"])) as typeof labels;
    own.add(series);
    return labels;
  };
}

/** The values of a gauge that differ in their labels, within the same bound. */
export function firstSeries<T>(values: readonly T[]): readonly T[] {
  return values.length > MOST ? values.slice(0, MOST) : values;
}
