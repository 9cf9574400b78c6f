import type { ports } from "@portico/core";

/** How long a collection of metrics waits for a gauge. Scrapers usually give up after ten seconds. */
const READ_MS = 1000;

/** A gauge with its present numbers. */
export interface ReadGauge {
  readonly gauge: ports.Gauge;
  readonly values: readonly ports.GaugeValue[];
}

/** The gauges of one app. */
export class Gauges {
  readonly #added = new Set<{ readonly gauge: ports.Gauge }>();

  /** Throws an Error for a name that a gauge with another help has. Returns the function that removes the gauge. */
  add(gauge: ports.Gauge): () => void {
    const { name, help } = gauge;
    const isTaken = [...this.#added].some((other) => other.gauge.name === name && other.gauge.help !== help);
    if (isTaken) throw new Error(`There are two gauges with the name "${name}"`);
    const added = { gauge };
    this.#added.add(added);
    return () => void this.#added.delete(added);
  }

  /** Read all gauges at the same time: one entry for each name. Never rejects, and takes a second at most. */
  async read(): Promise<readonly ReadGauge[]> {
    const byName = Map.groupBy(this.#added, ({ gauge }) => gauge.name);
    return Promise.all(
      [...byName.values()].map(async (same) => {
        const values = await Promise.all(same.map(({ gauge }) => readGauge(gauge)));
        return { gauge: same[0]!.gauge, values: firstSeries(values.flat()) };
      }),
    );
  }
}

/** The present numbers of one gauge; none if it throws, or does not answer in a second. Never rejects. */
export async function readGauge(gauge: ports.Gauge): Promise<readonly ports.GaugeValue[]> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), READ_MS);
  try {
    const read = await Promise.race([gauge.read(), late.promise]);
    const values = typeof read === "number" ? [{ labels: {}, value: read }] : (read ?? []);
    return firstSeries(values.filter(isGaugeValue));
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
}

/** A gauge of a plugin may come without types. A value that cannot be written is left out, and not the other ones. */
function isGaugeValue(given: unknown): given is ports.GaugeValue {
  if (typeof given !== "object" || given === null) return false;
  const { labels, value } = given as Partial<ports.GaugeValue>;
  if (!Number.isFinite(value) || typeof labels !== "object" || labels === null) return false;
  return Object.values(labels).every((label: unknown) => typeof label === "string");
}

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
